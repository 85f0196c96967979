// tools/results_tables.h: the tables of the results page, as Markdown.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/log_table.h"
#include "tools/results_index.h"

namespace tools {

// A run and all that its log tells, by epochs or by steps.
struct RunFigures {
  const IndexedRun& run;
  runner::LogTable table;
};

// The figures of an experiment's runs.
struct ExperimentFigures {
  const IndexedExperiment& experiment;
  kj::Array<RunFigures> runs;
};

// All of these leave out a column that is empty in every row.

// `| cluster | processor | cores | memory | network |`
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
// Runs with steps: `| run | steps | global steps | loss | accuracy | s/batch | published loss |
// published accuracy |`, a row a run: the figures of the log's end, over all workers that wrote
// one, or else of its last line that has them; the median of s/batch.
kj::String figuresTable(const ExperimentFigures& figures);

// `| run | cluster | machines | devices | batch size / device | kvstore | epoch time (s) |
// images/s | published epoch time (s) | published images/s |` of all runs with epochs. The time is
// the mean over the epochs after the first, or, where there is none, that of the first; images/s
// are an epoch's images by that time.
kj::String performanceTable(kj::ArrayPtr<const ExperimentFigures> experiments);

}  // namespace tools
