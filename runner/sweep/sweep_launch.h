// runner/sweep/sweep_launch.h: runs the runs of a sweep, several side by side, and continues where
// an earlier call ended.
#pragma once

#include <kj/async-io.h>

#include "runner/experiment/asha.h"
#include "runner/launch/launch.h"
#include "runner/launch/progress.h"
#include "runner/logs/run_record.h"
#include "runner/sweep/loaded_runs.h"
#include "runner/sweep/sweep_folders.h"
#include "runner/sweep/validated_epochs.h"

namespace runner {

// Returns how many runs go side by side: the number in the file, or as many of the largest run as
// `cores` can hold.
uint parallelRuns(const LoadedRuns& all, uint cores);

// One process and one event loop carry all runs. The roles of each run are processes of their own.
class SweepLaunch {
public:
  // Runs go to folders below `runs`. All arguments must outlive this object. `io`'s port must
  // capture child exits.
  SweepLaunch(const LoadedRuns& all, kj::StringPtr runs, kj::AsyncIoContext& io,
      LaunchOptions options = {});
  ~SweepLaunch() noexcept(false);
  KJ_DISALLOW_COPY(SweepLaunch);

  // Skips runs that have finished, runs the others, and resolves to the records of all runs, in the
  // order of the list. A run that fails does not end others.
  //
  // If another process works on a run, this process does the other runs first. It then reads the
  // record of that run, or runs it if the other process has released it unfinished. The record says
  // RUNNING if the other process still works on it. If another process tries a run again that
  // failed here, the record says that the run has finished, or RUNNING.
  //
  // Runs that an earlier call has begun continue from their newest checkpoints. Dropping the
  // promise takes the running runs down. Call once. The promise must be dropped before this object.
  kj::Promise<kj::Array<RunRecord>> run();
  // Call it before the promise is dropped. `reason` is recorded in every run that is then taken
  // down.
  void interrupt(kj::StringPtr reason) { interruption = kj::str(reason); }
  // Saves the runs in progress: see Launch::save(). Starts no others after interrupt().
  kj::Promise<void> save();
  // Removes the progress lines.
  void clear() { progress.clear(); }

private:
  class View;
  struct Running;

  // Returns the record of a run that needs no more work: see SweepFolders::doneBefore(). Says that
  // the run is skipped, and counts it at the rungs.
  kj::Maybe<RunRecord> skipped(size_t index);

  // Takes the records of runs that need no more work, from `index` on. The others wait.
  kj::Promise<void> sort(size_t index);
  // Runs all waiting runs, several side by side, and those that other processes have released
  // meanwhile.
  kj::Promise<void> runWaiting(uint parallel);
  // Reads the records of runs that failed here and that another process has tried again since.
  void lookAgainAtFailed();
  // Starts one run after another, each when the one before has ended.
  kj::Promise<void> takeNext();
  kj::Promise<RunRecord> start(size_t index);
  static RunRecord recordOf(const Running& running, Outcome& outcome);
  void finish(size_t index, RunRecord record);

  // Counts the epochs of an earlier call at the rungs.
  void noteRungs(const RunRecord& record);
  void noteRung(const EpochRecord& epoch);

  // Called by the views.
  void continued(Running& running, Event::Continued::Reader continued);
  void validated(Running& running, const ValidatedEpoch& validated);
  void redraw();
  void say(kj::StringPtr line);

  const LoadedRuns& all;
  const SweepFolders folders;
  kj::AsyncIoContext& io;
  const LaunchOptions options;
  ProgressLine progress;
  kj::Maybe<Asha> asha;
  kj::Array<RunRecord> records;  // by index; empty for runs that have not ended
  size_t toDo = 0;               // how many runs earlier calls had not finished
  kj::Vector<size_t> waiting;    // indices of runs to start, and how many have been started
  size_t started = 0;
  kj::Vector<size_t> elsewhere;  // indices of runs that another process had at the last look
  uint ended = 0;                // how many of the `toDo` runs have ended
  uint failed = 0;               // how many of the ended runs have failed
  kj::Maybe<kj::String> interruption;
  kj::TimePoint began;
  kj::Vector<Running*> running;
};

}  // namespace runner
