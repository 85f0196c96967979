// tools/logs/unreadable_lines.h: the lines of a log that would have a figure if their number could
// be read.
#pragma once

#include <kj/array.h>
#include <kj/string.h>
#include <stdint.h>

namespace tools {

// Such lines of any style: see isUnreadableLogLine() and isUnreadableStepLine().
struct UnreadableLines {
  uint64_t count = 0;
  uint64_t first = 0;  // the number of the first one in the file, from 1
};
UnreadableLines unreadableLinesIn(kj::ArrayPtr<const char> log);

// Returns them in words: "2 lines whose number cannot be read; the first is line 7".
kj::String describe(const UnreadableLines& lines);

}  // namespace tools
