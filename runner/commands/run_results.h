// runner/commands/run_results.h: what a user reads about a run when it begins and when it has
// ended.
#pragma once

#include "runner/experiment/model_facts.h"
#include "runner/launch/run_view.h"
#include "runner/logs/run_folder.h"
#include "runner/system/command_line.h"
#include "runner/tables/reported_run.h"

namespace runner {

// Returns the lines that a user reads when the run in `folder` begins.
kj::String openingOf(
    const Experiment& experiment, const ModelFacts& facts, const RunFolder& folder);

// Completes the run in `folder`, which has finished: prints its table, a hint if its workers have
// waited for records or if it has learned nothing, and its weights' hash, and writes its report
// there. The data set has `classes` classes. `view` has shown its log. Returns MISSED, and prints
// why, if the run missed an expectation. If the report cannot be written, throws after everything
// is printed.
ExitCode reportRun(const RunFolder& folder, kj::StringPtr name, kj::StringPtr weightsSha256,
    uint classes, const SingleRunView& view);

// Writes a report of a run that has failed or was interrupted. Prints an error if it cannot be
// written, unless the folder itself was removed.
void reportBrokenRun(const RunFolder& folder, kj::StringPtr name);

// Returns a label such as "fashion_mnist_dist_sync/3".
kj::String labelOf(kj::StringPtr folder, kj::StringPtr name);

// Returns `runs` with their labels and the verdicts of `judge`, ready for tables and reports. A
// single run keeps its label. Reports files that could not be read.
kj::Array<ReportedRun> judged(
    kj::Array<ReportedRun> runs, void (*judge)(kj::ArrayPtr<ReportedRun>) = &judgeAll);

// Prints the tables of the runs on stdout. On a terminal, they are fitted to its width. Otherwise
// they are printed as Markdown. A long table of steps shows only some of its rows, evenly spaced.
void printTables(kj::ArrayPtr<const ReportedRun> runs);

// At a terminal, which may not show every column, says where the complete tables are.
void printWhereTablesAre(kj::StringPtr folder);

void printWeights(kj::StringPtr sha256, kj::StringPtr folder);

// Returns the exit code of runs that all went well, and prints missed expectations.
ExitCode codeOf(kj::ArrayPtr<const ReportedRun> runs);

}  // namespace runner
