// runner/sweep/sweep_folders.h: the runs of a sweep in the folder of runs: what they are called,
// where they are, and what earlier calls have left of them.
#pragma once

#include "runner/logs/run_folder.h"
#include "runner/logs/run_lock.h"
#include "runner/logs/run_record.h"
#include "runner/sweep/loaded_runs.h"

namespace runner {

// Finds the runs of a sweep by their index in the list of runs. Keeps nothing: each call reads or
// writes the folders.
class SweepFolders {
public:
  // Runs are in folders below `runs`. Both must outlive this object.
  SweepFolders(const LoadedRuns& all, kj::StringPtr runs): all(all), runs(runs) {}

  // Returns the path of the folder that contains the folders of all runs.
  kj::String parent() const;
  const Experiment& experimentOf(size_t index) const;
  RunFolder folderOf(size_t index) const;
  // Returns `run 2/3 learning_rate=0.1`.
  kj::String nameOf(size_t index) const;
  // Returns sweep.stop; empty if there is none.
  kj::String stopRule() const;

  // Returns the record of a run that has finished, or was stopped by the same rule.
  kj::Maybe<RunRecord> endedBefore(size_t index) const;
  // Returns why the folder of that run no longer holds the weights of its record. Null if it does,
  // or if a stopped run never had weights.
  kj::Maybe<kj::String> whyNoWeights(size_t index, const RunRecord& record) const;
  // Returns a sentence about a run whose events are damaged, so that nobody knows whether it has
  // finished. Null if they are not.
  kj::Maybe<kj::String> damageOf(size_t index) const;
  // Returns the record of a run that has ended before and whose weights are there. It needs no more
  // work.
  kj::Maybe<RunRecord> doneBefore(size_t index) const;
  // Returns the record of a run that an earlier call has begun and that continues from its newest
  // checkpoint. Null if the run begins, or begins again because a rule has stopped it.
  kj::Maybe<RunRecord> begunBefore(size_t index) const;
  // Writes the experiment file of a run to its folder, which is held. Removes what earlier runs
  // have left there, unless the run continues from there. Returns begunBefore().
  kj::Maybe<RunRecord> prepare(const HeldRunFolder& held, size_t index) const;
  // Returns what is known of a run that another process runs now.
  RunRecord recordElsewhere(size_t index) const;
  // Returns what is known of a run that has failed, and why it has.
  RunRecord failedRecord(size_t index, kj::String reason) const;

  // Writes the order of the runs for `runner table`.
  void writeOrder() const;

  // Return the sentences for the user about a run that is skipped, or has ended.
  kj::String skippedText(size_t index, const RunRecord& record) const;
  kj::String endedText(size_t index, const RunRecord& record) const;

private:
  // Returns the record of the run in the folder. Null if the folder has no run, if the run cannot
  // be read, or if it is a run of another experiment.
  kj::Maybe<RunRecord> recordOf(size_t index) const;

  const LoadedRuns& all;
  const kj::StringPtr runs;
};

}  // namespace runner
