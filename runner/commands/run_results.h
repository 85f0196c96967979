// runner/commands/run_results.h: what a user reads of a run when it begins, and once it is over.
#pragma once

#include "runner/experiment/model_facts.h"
#include "runner/launch/run_view.h"
#include "runner/logs/run_folder.h"
#include "runner/system/command_line.h"
#include "runner/tables/reported_run.h"

namespace runner {

// What a user reads when the run in `folder` begins.
kj::String openingOf(
    const Experiment& experiment, const ModelFacts& facts, const RunFolder& folder);

// What is left to do when the run in `folder` has finished: prints its table and its weights' hash,
// and leaves its report there. `view` has shown its log. MISSED if the run is not what it expects,
// which is told. Throws if the report cannot be written, once everything is printed.
ExitCode reportRun(const RunFolder& folder, kj::StringPtr name, kj::StringPtr weightsSha256,
    const SingleRunView& view);

// Leaves a report of a run that has failed or was interrupted. A report that cannot be written is
// told, unless the folder itself is gone.
void reportBrokenRun(const RunFolder& folder, kj::StringPtr name);

// "fashion_mnist_dist_sync/3".
kj::String labelOf(kj::StringPtr folder, kj::StringPtr name);

// All that can be said of the runs once they are over, judged by `judge`. A single one keeps its
// label. What of them cannot be read is told.
kj::Array<ReportedRun> judged(
    kj::Array<ReportedRun> runs, void (*judge)(kj::ArrayPtr<ReportedRun>) = &judgeAll);

// Prints the tables: to a terminal what fits its width, else Markdown. A table by steps is thinned.
void printTables(kj::ArrayPtr<const ReportedRun> runs);

// Tells somebody at a terminal, who may not see every column, where the others are.
void printWhereTablesAre(kj::StringPtr folder);

void printWeights(kj::StringPtr sha256, kj::StringPtr folder);

// Exit code of runs that all went well: what was missed is told.
ExitCode codeOf(kj::ArrayPtr<const ReportedRun> runs);

}  // namespace runner
