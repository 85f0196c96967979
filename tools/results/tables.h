// tools/results/tables.h: the tables of the results page, as Markdown.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/tables/log_table.h"
#include "tools/results/index.h"

namespace tools {

// A run and all that its log tells, by epochs or by steps.
struct RunFigures {
  const IndexedRun& run;
  runner::LogTable table;

  // Images of one step of all devices.
  uint64_t stepImages() const { return uint64_t(run.batchSize) * run.devices; }
};

// The figures of an experiment's runs.
struct ExperimentFigures {
  const IndexedExperiment& experiment;
  kj::Array<RunFigures> runs;
};

// All of these leave out a column that is empty in every row.

// `| cluster | processor | cores | memory | network | software |`
kj::String machinesTable(kj::ArrayPtr<const Machines> machines);
// `| data set | classes | image | training images | validation images |`
kj::String datasetsTable(kj::ArrayPtr<const Dataset> datasets);

// What was found, and below it a line a run: its file, where the published figures come from, why
// ours are others.
//
// Runs with epochs: `| run | epoch | train accuracy | valid accuracy | published train | published
// valid |`. The rows are the chosen epochs that the log has, and those published; what was
// published for the end stands beside our last. One run needs no first column.
//
// Runs with steps: `| run | steps | global steps | loss | validation cross entropy (sum) | accuracy
// | s/batch | images/s | published loss | published accuracy | published images/s |`. A row a run
// has its end (see endOf()), and what was published for it; what was published for a global step
// has a row of its own, beside our first line at or behind that step.
kj::String figuresTable(const ExperimentFigures& figures);

// `| run | cluster | machines | devices | batch size / device | kvstore | epoch time (s) |
// images/s | published epoch time (s) | published images/s |`. Of runs with epochs, the time is the
// mean over the epochs after the first, or, where there is none, that of the first; images/s are
// an epoch's images by that time. Of runs with steps, images/s are as endOf() has them, and the
// time is what an epoch's images take at that rate.
kj::String performanceTable(kj::ArrayPtr<const ExperimentFigures> experiments);

}  // namespace tools
