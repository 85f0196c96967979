// runner/commands/run_command.h: what `runner run` and `runner table` do once their words are read.
#pragma once

#include "rpc/trace.h"
#include "runner/experiment/model_facts.h"
#include "runner/launch/run_view.h"
#include "runner/logs/run_folder.h"
#include "runner/sweep/loaded_runs.h"
#include "runner/system/command_line.h"
#include "runner/tables/find_runs.h"
#include "runner/tables/reported_run.h"

namespace runner {

// What is to be recorded of a run, and the file that it goes to.
struct TraceOrder {
  rpc::TraceSteps steps;
  kj::StringPtr path;
};

// Runs what `all` holds, whose data are there, in folders below `runs`: log lines, tables and
// weights' hashes to stdout, progress and what is to be told of the course to stderr. Ends the
// process, whose threads of a failed run cannot be joined. A `trace` is of a single run.
[[noreturn]] void runExperiment(const LoadedRuns& all, kj::StringPtr runs,
    kj::Maybe<TraceOrder> trace, CommandLine& commandLine);

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

// Where else to write a report.
constexpr kj::StringPtr OTHER_REPORT = "choose another folder with --into"_kj;

// The runs in the folders `named`: of runs, or of folders that hold such. Adds to `errors` one
// sentence for each folder without runs, and each run whose events cannot be read: these are left
// out.
kj::Array<ReportedRun> readRuns(
    kj::ArrayPtr<const kj::String> named, kj::Vector<kj::String>& errors);

// Prints the table of what readRuns() gave. Writes its report to the folder `into`, which must be
// there, or none if that is empty. MISSED if a run is not what it expects, which is told, as is
// what could not be read.
ExitCode showRuns(kj::Array<ReportedRun> read, kj::StringPtr into);

}  // namespace runner
