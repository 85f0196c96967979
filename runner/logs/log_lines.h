// runner/logs/log_lines.h: writes the classic log lines of a worker, and finds them in any log.
#pragma once

#include <kj/common.h>
#include <kj/string.h>
#include <kj/time.h>
#include <kj/vector.h>

namespace runner {

using kj::uint;

// Writing. The lines have the form of MXNet's from December 2015 to 0.9.3, so that parsers of that
// time can read our logs. None of them ends in a newline. Epochs count from 0 in logs (tables count
// from 1).

// Returns a moment in local time, with one space at its end: `2016-01-22 14:22:03,897 `.
kj::String logTime(kj::Date time);

// Returns the text before each line of worker `rank`, in local time and with one space at its end:
// `2016-01-22 14:22:03,897 Node[0] `.
kj::String logPrefix(kj::Date time, uint rank);

// `Epoch[4] Train-accuracy=0.449129`: `value` over all images of the epoch, measured during
// training.
kj::String trainLine(uint epoch, kj::StringPtr metric, double value);

// `Epoch[4] Time cost=10.623`: seconds of training, without validation and checkpoints.
kj::String timeLine(uint epoch, double seconds);

// `Epoch[4] Validation-accuracy=0.497656`.
kj::String validationLine(uint epoch, kj::StringPtr metric, double value);

// `Epoch[0] Batch [50]<TAB>Speed: 820.11 samples/sec<TAB>Train-accuracy=0.345109`: one worker's
// images/s since its last such line, and the metric so far.
kj::String speedLine(uint epoch, uint batch, double imagesPerS, kj::StringPtr metric, double value);

// Reading. Recognises the lines that MXNet wrote in any period (`Iteration[..]`, `Iter[..]` or
// `Epoch[..]`, after any prefix, with or without `Node[r]`), and those of the functions above.

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

// Recognises `line`, which has no newline and stands at line `number`. A `\r` at its end does no
// harm. Null for any other line, also if its number is cut off or its epoch has more than nine
// digits.
kj::Maybe<LogLine> readLogLine(kj::ArrayPtr<const char> line, uint64_t number);

// Returns all recognised lines of `log`, in the file's order. `log` must outlive the result.
kj::Vector<LogLine> readLogLines(kj::ArrayPtr<const char> log);

}  // namespace runner
