// runner/sweep/sweep_launch.h: runs the runs of a sweep, several side by side, and continues where
// an earlier call ended.
#pragma once

#include <kj/async-io.h>

#include "runner/experiment/asha.h"
#include "runner/launch/launch.h"
#include "runner/launch/progress.h"
#include "runner/logs/run_record.h"
#include "runner/sweep/loaded_runs.h"

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
  // If another process runs a run, or tries it again after it failed here, this process leaves it
  // alone and reads its record at the end. The record then says how it ended, or RUNNING.
  //
  // Dropping the promise takes the running runs down. The next call begins them anew. Call once.
  // The promise must be dropped before this object.
  kj::Promise<kj::Array<RunRecord>> run();
  // Call it before the promise is dropped. `reason` is recorded in every run that is then taken
  // down.
  void interrupt(kj::StringPtr reason) { interruption = kj::str(reason); }
  // Removes the progress lines.
  void clear() { progress.clear(); }

private:
  class View;
  struct Running;

  const Experiment& experimentOf(size_t index) const;
  RunFolder folderOf(size_t index) const;
  kj::String nameOf(size_t index) const;
  // Returns the record of a run that has finished, or was stopped by the same rule, in an earlier
  // call.
  kj::Maybe<RunRecord> endedBefore(size_t index) const;
  // Returns why the folder of that run no longer holds the weights of its record. Null if it does,
  // or if a stopped run never had weights.
  kj::Maybe<kj::String> whyNoWeights(size_t index, const RunRecord& record) const;
  // Returns the record of a run that has ended before and whose weights are there. It needs no more
  // work.
  kj::Maybe<RunRecord> doneBefore(size_t index) const;
  // The same. Also says that the run is skipped, and counts it at the rungs.
  kj::Maybe<RunRecord> skipped(size_t index);
  // Returns sweep.stop; empty if there is none.
  kj::String stopRule() const;
  void noteRungs(const RunRecord& record);

  // Writes the order of the runs for `runner table`.
  void writeOrder() const;

  // Runs all waiting runs, several side by side, and those that other processes have released
  // meanwhile.
  kj::Promise<void> runWaiting(uint parallel);
  // Reads the records of runs that failed here and that another process has tried again since.
  void lookAgainAtFailed();
  // Starts one run after another, each when the one before has ended.
  kj::Promise<void> takeNext();
  kj::Promise<RunRecord> start(size_t index);
  // Returns what is known of a run that another process runs now.
  RunRecord recordElsewhere(size_t index) const;
  static RunRecord recordOf(const Running& running, Outcome& outcome);
  // Prints how the run ended.
  void tell(size_t index, const RunRecord& record);
  void finish(size_t index, RunRecord record);

  // Called by the views.
  void validated(Running& running, Event::Validated::Reader validated);
  void redraw();
  void say(kj::StringPtr line);

  const LoadedRuns& all;
  const kj::StringPtr runs;
  kj::AsyncIoContext& io;
  const LaunchOptions options;
  ProgressLine progress;
  kj::Maybe<Asha> asha;
  kj::Array<RunRecord> records;  // by index; empty for runs that have not ended
  size_t toDo = 0;               // how many runs were not done before
  kj::Vector<size_t> waiting;    // indices of runs to start, and how many have been started
  size_t started = 0;
  kj::Vector<size_t> elsewhere;  // indices of runs that another process had at the last look
  uint ended = 0;                // how many of those to do
  uint failed = 0;               // how many of the ended
  kj::Maybe<kj::String> interruption;
  kj::TimePoint began;
  kj::Vector<Running*> running;
};

}  // namespace runner
