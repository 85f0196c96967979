// runner/roles/worker_reports.h: the events that a worker's compute thread reports.
#pragma once

#include "runner/roles/best_epoch.h"
#include "runner/roles/io_thread.h"
#include "runner/roles/training_state.h"
#include "runner/roles/worker_parts.h"

namespace runner {

// Makes the events of one worker and hands them to its io thread. Called by the compute thread.
class WorkerReports {
public:
  // Reads `state` whenever it makes an event. `isByHand`: also tells its user about epochs. All
  // arguments must outlive it.
  WorkerReports(WorkerParts& parts, IoThread& ioThread, const TrainingState& state, bool isByHand);
  KJ_DISALLOW_COPY(WorkerReports);

  // Reports that training begins, and counts the time of training from now on.
  void begun();
  // Visits the state that it keeps from step to step, to save and to restore it.
  void visitState(configs::StateVisitor& visitor);
  // Begins a new interval, which the next call of speed() reports.
  void restartInterval();
  // Reports the steps since the last report of speed, and begins a new interval. `done`: the steps
  // that log.every counts so far, of the epoch or of the run. `partial`: the epoch ended before
  // log.every was reached. `epochBatches`: the steps of the epoch.
  void speed(uint epoch, uint done, bool partial, uint epochBatches);
  // Reports that the last step of the run is done.
  void ended();
  // Reports that an epoch of `steps` steps took `seconds`.
  void trained(uint epoch, uint64_t steps, double seconds);
  // Reports the validation of an epoch. `isLast`: it was the last epoch. Does nothing if `result`
  // counts no images. `endsEarly` says why, if it was the last one because of train.early_stop.
  void validated(uint epoch, const nn::BatchResult& result, bool isLast,
      kj::Maybe<kj::StringPtr> endsEarly = nullptr);
  // Reports the validation of the moving average of the weights.
  void averaged(uint epoch, const nn::BatchResult& result);
  // Reports that an epoch is the best one so far, and that its weights are kept.
  void best(const BestEpoch& best);
  // Reports each record that `batcher` has left out since the last call, with the reason.
  void badRecords(io::Batcher& batcher);

private:
  uint64_t globalStep() const;
  double learningRate() const;
  // Says `text` about an epoch on stderr if a user has started this worker by hand. Otherwise does
  // nothing.
  void say(uint epoch, kj::StringPtr text, const nn::BatchResult& sums) const;

  WorkerParts& parts;
  const Experiment& experiment;
  IoThread& ioThread;
  const TrainingState& state;
  const bool isByHand;
  Stopwatch trainingTime;         // since the first step
  Stopwatch intervalTime;         // since the last report of speed
  uint64_t intervalBegin = 0;     // the first step of the interval
  uint64_t badRecordsBefore = 0;  // those of earlier epochs
};

}  // namespace runner
