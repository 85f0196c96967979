// tools/results/tables.h: writes the tables of the results page as Markdown.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "tools/logs/log_table.h"
#include "tools/results/index.h"

namespace tools {

// A run and all figures of its log, by epochs or by steps.
struct RunFigures {
  const IndexedRun& run;
  LogTable table;

  // The images of one step of all devices.
  uint64_t stepImages() const { return uint64_t(run.batchSize) * run.devices; }
};

// The figures of an experiment's runs.
struct ExperimentFigures {
  const IndexedExperiment& experiment;
  kj::Array<RunFigures> runs;
};

// All of these leave out columns that are empty in every row.

// `| cluster | processor | cores | memory | network | software |`
kj::String machinesTable(kj::ArrayPtr<const Machines> machines);
// `| data set | classes | image | training images | validation images |`
kj::String datasetsTable(kj::ArrayPtr<const Dataset> datasets);

// Returns our figures, and below them one line per run: its file, the source of the published
// figures, why ours differ.
//
// Runs with epochs: `| run | epoch | train accuracy | valid accuracy | published train | published
// valid |`. The rows are the chosen epochs that the log has, and the published ones. Figures
// published for the end are beside our last ones. A single run needs no first column.
//
// Runs with steps: `| run | steps | global steps | loss | validation cross entropy (sum) | accuracy
// | s/batch | images/s | published loss | published accuracy | published images/s |`. Each run has
// one row with its end (see endOf()) and the figures published for it. Figures published for a
// global step have a row of their own, beside our first line at or after that step.
kj::String figuresTable(const ExperimentFigures& figures);

// Returns `| run | cluster | machines | devices | batch size / device | kvstore | epoch time (s) |
// images/s | published epoch time (s) | published images/s |`.
//
// Runs with epochs: the time is the mean over the epochs after the first, or that of the first if
// it is the only one. images/s are an epoch's images over that time. Runs with steps: images/s are
// those of endOf(), and the time is that of an epoch's images at this rate.
kj::String performanceTable(kj::ArrayPtr<const ExperimentFigures> experiments);

}  // namespace tools
