// runner/tables/step_table.h: makes the table of a run from a log with one line per step.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/logs/step_lines.h"
#include "runner/text/text_table.h"

namespace runner {

// One line. A part that the line does not have is null.
struct StepRow {
  kj::Maybe<uint64_t> step;    // of the worker that wrote the line
  kj::Maybe<uint> globalStep;  // of the job
  kj::Maybe<double> loss;      // of the batch
  kj::Maybe<double> accuracy;  // of the batch, 0 to 1
  kj::Maybe<double> batch_s;   // seconds per batch, by the rule of the log's style

  // Whether the row has figures of the end instead of a batch's. `loss` is tf_replica's validation
  // cross entropy (a sum over all records) or schlag's final cost. `accuracy` is schlag's on the
  // test records.
  bool end = false;
};

// The rows in the order of the file. Most such logs do not say which worker wrote a line.
struct StepTable {
  kj::Array<StepRow> rows;
  StepStyle style = StepStyle::TF_REPLICA;  // has no meaning without rows
};

// Makes the table of `lines`, which are of one style. tf_replica does not say how long a batch
// takes. For this style, the time is that since the same worker's line before. schlag's steps of a
// worker are counted from its epochs and batches.
StepTable stepTable(kj::ArrayPtr<const StepLine> lines);

// Returns the rows of steps that are multiples of `every`, and the rows of the end.
StepTable everyNth(const StepTable& table, uint every);

// Returns at most `rowsMax` of the rows (at least two), evenly spaced from the first to the last,
// and the rows of the end.
StepTable thinned(const StepTable& table, uint rowsMax);

// Returns the columns step, global step, loss, accuracy and s/batch. Missing figures have empty
// cells.
TextTable textOf(const StepTable& table);

}  // namespace runner
