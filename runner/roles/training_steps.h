// runner/roles/training_steps.h: a step of a worker: read, forward, backward, push, pull. Read this
// third, after worker.cc.
#pragma once

#include "runner/logs/verb_times.h"
#include "runner/roles/one_thread.h"
#include "runner/roles/training_state.h"
#include "runner/roles/weight_average.h"
#include "runner/roles/worker_parts.h"

namespace runner {

// Makes the steps of one worker, on its compute thread.
class TrainingSteps {
public:
  // Makes steps from `state.step` on, and counts them there. `oneThread` is told which records each
  // step uses. All arguments must outlive it. Throws if the device cannot average the weights.
  TrainingSteps(WorkerParts& parts, TrainingState& state, LiveProgress& progress,
      kj::Maybe<const OneThread&> oneThread);
  KJ_DISALLOW_COPY(TrainingSteps);

  // Makes one step. `isLastOfEpoch`: a validation may follow, so the next batch is not read ahead.
  // Throws if the loss is not finite, or if the store or the data fail.
  void make(bool isLastOfEpoch);
  // Computes the gradients of one step, but pushes none and does not count the step.
  void makeWithoutPushes();

  // Continues with the records that `division` gives to this worker. `isMore`: the worker makes
  // another step before the epoch ends.
  void divideBy(kj::Own<const io::Division> division, bool isMore);

  // Waits until the store has answered all pushes. The time counts as `pull`.
  void settle();
  // Rests at the end of an epoch: see KvStore::rest(). The time counts as `pull`.
  void rest();

  // Fetches the sums of the epoch into the state, from a program that adds them up itself. Does
  // nothing with another program.
  void fetchSums();
  // Sets the sums of the epoch to 0.
  void restartSums();

  // Call when the first weights are chosen: the lookahead starts from them.
  void startLookahead();
  // Adds the present weights to the average, if there is one.
  void takeAverage();
  // The moving average of the weights: with train.ema, at worker 0.
  kj::Maybe<const WeightAverage&> average() const;

  // Visits the lookahead and the average, to save and to restore them.
  void visitState(configs::StateVisitor& visitor);

private:
  void takeBatch();
  void stepWithStore(bool isLastOfEpoch, bool pushes);
  void stepBy(nn::Trainer& own);
  void charge(rpc::TracePoint point, double& verb_s, uint segment);
  void lookAhead();

  WorkerParts& parts;
  const Experiment& experiment;
  const ModelFacts& facts;
  nn::Program& program;
  Batches& batches;
  rpc::KvStore& store;
  TrainingState& state;
  LiveProgress& progress;
  const kj::Maybe<const OneThread&> oneThread;
  kj::Maybe<WeightAverage> ownAverage;
  kj::Array<float> slowStatistics;  // of the lookahead
  bool isBatchSet = false;          // whether the batch of the next step is set already
  Stopwatch verb;                   // since the last charge()
};

}  // namespace runner
