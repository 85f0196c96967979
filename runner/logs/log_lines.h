// runner/logs/log_lines.h: the classic log lines: how a worker writes them, and how they are found
// in any log.
#pragma once

#include <kj/common.h>
#include <kj/string.h>
#include <kj/time.h>
#include <kj/vector.h>

namespace runner {

using kj::uint;

// Writing. The shapes are MXNet's from December 2015 to 0.9.3, so that parsers of that time can
// read our logs. None of the lines ends in a newline. Epochs count from 0 in logs (tables count
// from 1).

// The moment, in local time and with one space at its end: `2016-01-22 14:22:03,897 `.
kj::String logTime(kj::Date time);

// What precedes each line of worker `rank`, in local time and with one space at its end:
// `2016-01-22 14:22:03,897 Node[0] `.
kj::String logPrefix(kj::Date time, uint rank);

// `Epoch[4] Train-accuracy=0.449129`: `value` over all of the epoch's images, taken while training.
kj::String trainLine(uint epoch, kj::StringPtr metric, double value);

// `Epoch[4] Time cost=10.623`: seconds of training, without validation and checkpoints.
kj::String timeLine(uint epoch, double seconds);

// `Epoch[4] Validation-accuracy=0.497656`.
kj::String validationLine(uint epoch, kj::StringPtr metric, double value);

// `Epoch[0] Batch [50]<TAB>Speed: 820.11 samples/sec<TAB>Train-accuracy=0.345109`: one worker's
// images/s since its last such line, and the metric so far.
kj::String speedLine(uint epoch, uint batch, double imagesPerS, kj::StringPtr metric, double value);

// Reading. Takes what MXNet wrote in any period (`Iteration[..]`, `Iter[..]` or `Epoch[..]`, behind
// any prefix, with or without `Node[r]`), and what the functions above write.

enum class LogLineKind { TRAIN, TIME, VALIDATION, SPEED };

// One recognised line.
struct LogLine {
  LogLineKind kind;

  // From 0, as the line has it.
  uint epoch;

  // Who wrote it; null where no `Node[r]` tells.
  kj::Maybe<uint> rank;

  // The metric's name in TRAIN and VALIDATION lines, empty in the others. Points into the log's
  // text.
  kj::ArrayPtr<const char> metric;

  // The metric; seconds in TIME lines; images/s in SPEED lines. May be nan or infinite.
  double value;

  // The line's place in the file, from 1.
  uint64_t number;
};

// Whether `metric`, of a line, is the one called `name`: capital and small letters are the same.
bool isCalled(kj::ArrayPtr<const char> metric, kj::StringPtr name);

// Recognises `line` (without its newline; `\r` at its end does no harm), which stands at `number`.
// Null for any other line, also for one whose number is broken off or whose epoch has more than
// nine digits.
kj::Maybe<LogLine> readLogLine(kj::ArrayPtr<const char> line, uint64_t number);

// All recognised lines of `log`, in the file's order. `log` must outlive the result.
kj::Vector<LogLine> readLogLines(kj::ArrayPtr<const char> log);

}  // namespace runner
