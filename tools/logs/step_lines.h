// tools/logs/step_lines.h: finds the lines of step-based logs: those of the styles tf_replica,
// tf_aws and schlag (see log_styles.h).
#pragma once

#include <kj/common.h>
#include <kj/string.h>
#include <kj/vector.h>
#include <stdint.h>

namespace tools {

using kj::uint;

enum class StepStyle { TF_REPLICA, TF_AWS, SCHLAG };

// One recognised line. A part that the line does not have is null.
struct StepLine {
  StepStyle style;

  // Whether the line gives a final figure, and not a figure of a step. tf_replica: the validation
  // cross entropy as `loss`. tf_aws: numbers of steps. schlag: the test accuracy, or the final cost
  // as `loss`.
  bool end = false;

  kj::Maybe<uint> rank;
  kj::Maybe<uint> step;        // of the worker
  kj::Maybe<uint> globalStep;  // of the job
  // For schlag, these replace `step`: the epoch, its batch, and how many batches it has, from 1.
  uint epoch = 0;
  uint batch = 0;
  uint epochBatches = 0;
  kj::Maybe<double> loss;
  kj::Maybe<double> accuracy;
  kj::Maybe<double> batch_s;
  kj::Maybe<double> moment_s;  // when it was written, in seconds since 1970

  // The line's number in the file, from 1.
  uint64_t number;
};

// Recognises `line`, which has no newline and is number `number` in the file, after any prefix.
// Null for any other line. A line of tf_aws may end early, and may have any text between `accura`
// and the number, because published logs were edited by hand (`accurac 0.92`, `accuracy0.79`).
kj::Maybe<StepLine> readStepLine(kj::ArrayPtr<const char> line, uint64_t number);

// Whether `line` would be such a line if all of its numbers could be read. In `Cost: 2,8133`, the
// number cannot be read, because it goes on after its end.
bool isUnreadableStepLine(kj::ArrayPtr<const char> line);

// Returns all recognised lines of `log`, in the file's order.
kj::Vector<StepLine> readStepLines(kj::ArrayPtr<const char> log);

}  // namespace tools
