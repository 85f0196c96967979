// runner/commands/resumed_run.h: the run that `runner run --resume` continues.
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

  // Whether the run had as many workers and servers as `experiment`.
  bool hasNumbersOf(const Experiment& experiment) const;
};

// Returns the run of this experiment below `runs` that --resume continues. Looks for these, in this
// order:
//
//   1. the newest run that has the digest of `loaded`, or would have it without [continued]
//   2. the newest unfinished run that differs only in the numbers of workers and servers
//   3. a run of the same file that was killed before it had an event. Its record is empty.
//
// A run of the same file on which a process works, and which has no event yet, comes before all
// older runs.
//
// Leaves out runs that an unfinished run continues with other numbers. Null if it finds nothing.
// Throws if a run's events cannot be read.
kj::Maybe<ResumedRun> newestRunOf(const LoadedExperiment& loaded, kj::StringPtr runs);

// Prepares a new run that continues `run` with the numbers of workers and servers of `wanted`,
// which differ from those of `run`. It begins at the end of an epoch. `reload` loads the experiment
// again with one more setting. Returns the folder of the new run, which is below `runs`. Says on
// stderr what happens. Throws, and says what to do, if `run` has no checkpoint at the end of an
// epoch.
RunFolder goOnFrom(const ResumedRun& run, kj::StringPtr runs, const Experiment& wanted,
    kj::FunctionParam<LoadedExperiment&(kj::String setting)> reload);

// Writes the instruction set with which the run has computed so far into the text of `loaded`,
// which roles read. If the file names one, the text stays. Throws, and says what to do, if the file
// names another one than the checkpoint from which the run would continue.
void keepInstructionSet(LoadedExperiment& loaded, const RunRecord& record);

// Whether the run in `folder` has begun and repeats the losses and joins of workers of another run
// (--membership), as its last holder has noted. Taking the lock of the folder removes that note.
bool repeatsMembers(const RunFolder& folder);

// Throws that --resume needs --membership for the run in `folder`, which repeats members.
[[noreturn]] void refuseWithoutMembership(const RunFolder& folder);

}  // namespace runner
