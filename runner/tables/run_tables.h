// runner/tables/run_tables.h: the tables of runs that files and reports show.
#pragma once

#include "runner/tables/reported_run.h"
#include "runner/text/text_table.h"

namespace runner {

// Of a table by steps, where people look at it; table.md and table.csv have all.
constexpr uint STEP_ROWS_MAX = 20;

// One row a run: what tells it from the others, last figures, mean time of an epoch, state, and, if
// any was expected, what was met. `decimals` are those of accuracies and losses.
TextTable resultsTable(kj::ArrayPtr<const ReportedRun> runs, uint decimals);
// The same with a column `run` of these names; without it if there are none.
TextTable resultsTable(
    kj::ArrayPtr<const ReportedRun> runs, uint decimals, kj::ArrayPtr<const kj::StringPtr> names);

// | epoch | … one row an epoch, over all workers.
TextTable epochsTable(const RunRecord& record);

// | epoch | global step | loss | accuracy | of the validations.
TextTable validationsTable(const RunRecord& record);

// "The last validation is over 6 views of each image, those before are over 1."; empty unless its
// figures are not like those above them.
kj::String viewsNote(const RunRecord& record);

// | run | at | figure | ours | published | difference | of all runs; the first column only if there
// are several. No rows if nothing was published.
TextTable publishedTable(kj::ArrayPtr<const ReportedRun> runs);

// Where a step's time goes, in ms, and what travels.
TextTable stepTimesTable(kj::ArrayPtr<const ReportedRun> runs);

// CPU, cores, memory, instruction set and version: one row for all runs if they agree.
TextTable machineTable(kj::ArrayPtr<const ReportedRun> runs);

// | run | weights sha256 | experiment sha256 |
TextTable weightsTable(kj::ArrayPtr<const ReportedRun> runs);

// "finished", "failed", "interrupted", "stopped", "running", "unfinished".
kj::StringPtr stateWord(RunRecord::State state);

// Where the published figures of the runs are from: each source once.
kj::Array<kj::StringPtr> sourcesOf(kj::ArrayPtr<const ReportedRun> runs);

// The last validation accuracy; null if there is none.
kj::Maybe<double> finalAccuracy(const RunRecord& record);

// How many expectations of the run were met, of how many.
struct Met {
  uint met = 0;
  uint all = 0;
};
Met metOf(const ReportedRun& run);

}  // namespace runner
