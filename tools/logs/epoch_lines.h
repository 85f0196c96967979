// tools/logs/epoch_lines.h: finds the classic log lines of a worker in any log: those that MXNet
// wrote in any period (`Iteration[..]`, `Iter[..]` or `Epoch[..]`, after any prefix, with or
// without `Node[r]`), and ours (runner/logs/log_lines.h).
#pragma once

#include <kj/common.h>
#include <kj/string.h>
#include <kj/vector.h>
#include <stdint.h>

namespace tools {

using kj::uint;

enum class LogLineKind { TRAIN, TIME, VALIDATION, SPEED };

// One recognised line.
struct LogLine {
  LogLineKind kind;

  // From 0, as in the line.
  uint epoch;

  // The worker that wrote the line. Null if it has no `Node[r]`.
  kj::Maybe<uint> rank;

  // The metric's name in TRAIN and VALIDATION lines, empty in the others. Points into the log's
  // text.
  kj::ArrayPtr<const char> metric;

  // The metric in TRAIN and VALIDATION lines, seconds in TIME lines, images/s in SPEED lines. May
  // be nan or infinite.
  double value;

  // The line's number in the file, from 1.
  uint64_t number;
};

// Whether `metric`, from a line, is the metric `name`. Upper and lower case count as the same.
bool isCalled(kj::ArrayPtr<const char> metric, kj::StringPtr name);

// Recognises `line`, which has no newline and is number `number` in the file. A `\r` at its end
// does no harm. Null for any other line, also if its number is cut off or its epoch has more than
// nine digits.
kj::Maybe<LogLine> readLogLine(kj::ArrayPtr<const char> line, uint64_t number);

// Whether `line` has the beginning of such a line and the name of a figure, but no number that can
// be read, as in `Epoch[0] Train-accuracy=0,5`.
bool isUnreadableLogLine(kj::ArrayPtr<const char> line);

// Returns all recognised lines of `log`, in the file's order. `log` must outlive the result.
kj::Vector<LogLine> readLogLines(kj::ArrayPtr<const char> log);

}  // namespace tools
