#include "tools/logs/unreadable_lines.h"

#include "runner/text/numbers.h"
#include "tools/logs/epoch_lines.h"
#include "tools/logs/line_text.h"
#include "tools/logs/step_lines.h"

namespace tools {

UnreadableLines unreadableLinesIn(kj::ArrayPtr<const char> log) {
  UnreadableLines found;
  eachLine(log, [&](LineText line, uint64_t number) {
    if (!isUnreadableLogLine(line) && !isUnreadableStepLine(line)) return;
    if (found.count == 0) found.first = number;
    found.count++;
  });
  return found;
}

kj::String describe(const UnreadableLines& lines) {
  return kj::str(runner::counted(lines.count, "line"),
      " whose number cannot be read; the first is line ", lines.first);
}

}  // namespace tools
