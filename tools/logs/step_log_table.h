// tools/logs/step_log_table.h: makes the table of a log with one line per step.
#pragma once

#include <kj/array.h>

#include "runner/tables/step_table.h"
#include "tools/logs/step_lines.h"

namespace tools {

// The rows in the order of the file. Most such logs do not say which worker wrote a line.
struct StepLogTable: public runner::StepTable {
  StepStyle style = StepStyle::TF_REPLICA;  // has no meaning without rows
};

// Makes the table of `lines`, which are of one style. tf_replica does not say how long a batch
// takes. For this style, the time is that since the same worker's line before. schlag's steps of a
// worker are counted from its epochs and batches.
StepLogTable stepLogTable(kj::ArrayPtr<const StepLine> lines);

// Returns the rows of steps that are multiples of `every`, and the final rows.
StepLogTable everyNth(const StepLogTable& table, uint every);

}  // namespace tools
