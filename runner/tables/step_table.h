// runner/tables/step_table.h: a table with one row per line of a log style that has lines per step.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/logs/log_styles.h"
#include "runner/text/text_table.h"

namespace runner {

// The rows in the order of the run.
struct StepTable {
  kj::Array<StepRow> rows;
};

// Returns at most `rowsMax` of the rows about batches, evenly spaced from the first to the last.
// Adds all final rows: see StepRow::end. `rowsMax` must be at least 2.
StepTable thinned(const StepTable& table, uint rowsMax);

// Returns the columns step, global step, loss, accuracy and s/batch. Missing figures have empty
// cells.
TextTable textOf(const StepTable& table);

}  // namespace runner
