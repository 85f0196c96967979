// runner/tables/step_table.h: the table of a run whose log has a line a step: text in, text out.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/logs/step_lines.h"
#include "runner/text/text_table.h"

namespace runner {

// One line. What it does not say is null.
struct StepRow {
  kj::Maybe<uint64_t> step;    // of the worker that wrote it
  kj::Maybe<uint> globalStep;  // of the job
  kj::Maybe<double> loss;      // of the batch
  kj::Maybe<double> accuracy;  // likewise, 0 to 1
  kj::Maybe<double> batch_s;   // seconds a batch, by the rule of the log's style

  // It holds the figures of the end in place of a batch's: as `loss` tf_replica's validation cross
  // entropy (a sum over all records) or schlag's final cost, as `accuracy` schlag's on the test
  // records.
  bool end = false;
};

// In the order of the file: most such logs do not say which worker wrote a line.
struct StepTable {
  kj::Array<StepRow> rows;
  StepStyle style = StepStyle::TF_REPLICA;  // means nothing where there are no rows
};

// Makes the table of `lines`, which are of one style. tf_replica does not say how long a batch
// takes: there it is the time since the same worker's line before. schlag's steps of a worker are
// counted from its epochs and batches.
StepTable stepTable(kj::ArrayPtr<const StepLine> lines);

// Only the rows of steps that `every` divides, and those of the end.
StepTable everyNth(const StepTable& table, uint every);

// At most `rowsMax` of the rows, at least two, from the first to the last in even distances, and
// those of the end.
StepTable thinned(const StepTable& table, uint rowsMax);

// The columns step, global step, loss, accuracy and s/batch; a figure that is not there leaves its
// cell empty.
TextTable textOf(const StepTable& table);

}  // namespace runner
