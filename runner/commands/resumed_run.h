// runner/commands/resumed_run.h: the run with which `runner run --resume` goes on.
#pragma once

#include <kj/function.h>
#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_record.h"

namespace runner {

struct ResumedRun {
  RunFolder folder;
  RunRecord record;
  // The experiment in its folder. Null if that is the experiment that was asked for. Otherwise the
  // two differ in [continued], in the numbers of workers and servers, or in both.
  kj::Maybe<LoadedExperiment> written = nullptr;

  // Whether it had the same numbers of workers and servers.
  bool hasNumbersOf(const Experiment& experiment) const;
};

// Returns the newest run of this experiment below `runs`:
//
//   - the newest of its name that has its digest, or has it without [continued];
//   - if there is none: the newest unfinished one that only had other numbers of workers or
//   servers;
//   - if there is none, either: one of the same file that was killed before it had an event, and on
//     which no process works. The record of such a run is empty.
//
// A run does not count if an unfinished one has gone on from it with other numbers. Null if there
// is no run of any kind. Throws if a run's events cannot be read.
kj::Maybe<ResumedRun> newestRunOf(const LoadedExperiment& loaded, kj::StringPtr runs);

// Lets a run go on with the numbers of workers and servers of `wanted`, from the end of an epoch of
// `run`, which has others. `reload` loads the experiment again with one more setting. Returns the
// folder of a new run of that experiment below `runs`. Says on stderr what happens. Throws, with
// the way out, if `run` has no such place.
RunFolder goOnFrom(const ResumedRun& run, kj::StringPtr runs, const Experiment& wanted,
    kj::FunctionParam<LoadedExperiment&(kj::String setting)> reload);

// Writes the instructions that the run has computed with so far into the text of `loaded`, which
// roles read, unless the file names them.
void keepInstructionSet(LoadedExperiment& loaded, const RunRecord& record);

}  // namespace runner
