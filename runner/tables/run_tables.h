// runner/tables/run_tables.h: the tables of runs in files and reports.
#pragma once

#include "runner/tables/reported_run.h"
#include "runner/text/text_table.h"

namespace runner {

// How many rows people see of a table by steps. table.md and table.csv have all rows.
constexpr uint STEP_ROWS_MAX = 20;

// Returns a table with one row per run: its distinguishing settings, last figures, mean time of an
// epoch, state, and met expectations, if there are any. `decimals` are those of accuracies and
// losses.
TextTable resultsTable(kj::ArrayPtr<const ReportedRun> runs, uint decimals);
// Returns the same with a column `run` with these names. If `names` is empty, there is no such
// column.
TextTable resultsTable(
    kj::ArrayPtr<const ReportedRun> runs, uint decimals, kj::ArrayPtr<const kj::StringPtr> names);

// Returns a table with one row per epoch: accuracies, losses, time and speed, over all workers.
TextTable epochsTable(const ReportedRun& run);

// Returns a table with one row per validation: | epoch | global step | validation loss | validation
// accuracy |, and with log.top_k = 5 also | top-5 accuracy |
TextTable validationsTable(const ReportedRun& run);

// Returns "The last validation uses 6 views of each image, earlier ones use 1." Empty if all
// validations have the same number of views.
kj::String viewsNote(const RunRecord& record);

// Returns one sentence for each time that the run continued with other numbers of workers or
// servers.
kj::Array<kj::String> resizeNotes(const RunRecord& record);

// Returns the published figures beside ours: | run | at | figure | ours | published | difference |.
// The first column is there only if there are several runs. No rows if nothing was published.
TextTable publishedTable(kj::ArrayPtr<const ReportedRun> runs);

// Returns the time of a step by verbs, in ms, the share of reading, and the traffic of a step.
TextTable stepTimesTable(kj::ArrayPtr<const ReportedRun> runs);

// Returns CPU, cores, memory, instruction set and version. One row for all runs if they agree.
TextTable machineTable(kj::ArrayPtr<const ReportedRun> runs);

// Returns one row per run, with the sha256 of its weights and of its experiment.
TextTable weightsTable(kj::ArrayPtr<const ReportedRun> runs);

// Returns "finished", "failed", "interrupted", "stopped", "running" or "unfinished".
kj::StringPtr stateWord(RunRecord::State state);

// Returns the sources of the published figures of the runs, each once.
kj::Array<kj::StringPtr> sourcesOf(kj::ArrayPtr<const ReportedRun> runs);

// Returns each log.top_k of the runs, in ascending order, without 0.
kj::Array<uint> topKsOf(kj::ArrayPtr<const ReportedRun> runs);

// Returns the last validation accuracy, or null.
kj::Maybe<double> finalAccuracy(const RunRecord& record);

// How many expectations of the run were met, out of how many.
struct Met {
  uint met = 0;
  uint all = 0;
};
Met metOf(const ReportedRun& run);

}  // namespace runner
