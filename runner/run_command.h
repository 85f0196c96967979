// runner/run_command.h: what `runner run` and `runner table` do once their words are read.
#pragma once

#include "rpc/trace.h"
#include "runner/command_line.h"
#include "runner/find_runs.h"
#include "runner/loaded_runs.h"

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

// Where else to write a report.
constexpr kj::StringPtr OTHER_REPORT = "choose another folder with --into"_kj;

// Prints the table of all runs in `folders`, what findRuns() gave for each folder that was named.
// Writes their report to the folder `into`, which must be there, or none if that is empty. MISSED
// if a run is not what it expects, which is told, as is what could not be read.
ExitCode showRuns(kj::ArrayPtr<const kj::Array<FoundRun>> folders, kj::StringPtr into);

}  // namespace runner
