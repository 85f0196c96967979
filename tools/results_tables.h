// tools/results_tables.h: the tables of the results page, as Markdown.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/result_table.h"
#include "tools/results_index.h"

namespace tools {

// What the log of a run tells: all of its epochs.
struct RunFigures {
  const IndexedRun& run;
  runner::ResultTable table;
};

// The figures of an experiment's runs.
struct ExperimentFigures {
  const IndexedExperiment& experiment;
  kj::Array<RunFigures> runs;
};

// `| cluster | processor | cores | memory | network |`
kj::String machinesTable(kj::ArrayPtr<const Machines> machines);
// `| data set | classes | image | training images | validation images |`
kj::String datasetsTable(kj::ArrayPtr<const Dataset> datasets);

// `| epoch | train accuracy | valid accuracy |`, with `run` before them where there are several
// and the published accuracies behind them where there are such; below it a line a run: its
// file, where the published figures come from, why ours are others. The rows are the chosen epochs
// that the log has, and those published.
kj::String accuracyTable(const ExperimentFigures& figures);

// `| run | cluster | machines | devices | batch size / device | kvstore | epoch time |
// images/s |`, with the published ones behind them where there are such. The time is the mean over
// the epochs after the first, or, where there is none, that of the first; images/s are an epoch's
// images by that time.
kj::String performanceTable(kj::ArrayPtr<const ExperimentFigures> experiments);

}  // namespace tools
