#include "runner/roles/training_steps.h"

#include "configs/language/failure.h"
#include "nn/loops/floats.h"
#include "runner/experiment/run_length.h"

namespace runner {

TrainingSteps::TrainingSteps(WorkerParts& parts, TrainingState& state, LiveProgress& progress,
    kj::Maybe<const OneThread&> oneThread)
    : parts(parts),
      experiment(parts.experiment),
      facts(parts.facts),
      program(*parts.program),
      batches(*parts.batches),
      store(*parts.store),
      state(state),
      progress(progress),
      oneThread(oneThread),
      slowStatistics(nn::zeros(facts.graph.statisticsSize)) {
  KJ_IF_MAYBE(config, experiment.train.average) {
    if (parts.trainer != nullptr) {
      configs::fail(
          "train.ema needs the weights of each step on the host, but the device updates them by "
          "itself. Leave train.ema out, or choose kvstore.mode = \"dist_sync\"");
    }
    if (parts.rank == 0) ownAverage.emplace(config->decay, facts.graph);
  }
}

void TrainingSteps::make(bool isLastOfEpoch) {
  KJ_IF_MAYBE(own, parts.trainer) {
    stepBy(*own);
  } else {
    stepWithStore(isLastOfEpoch, true);
  }
  state.step++;
  bool isOnHost = parts.trainer == nullptr;
  if (isOnHost) state.add(state.last, state.step == 1);
  state.show(progress);
  if (!isOnHost && progress.wasRead.exchange(false)) fetchSums();
}

void TrainingSteps::makeWithoutPushes() {
  stepWithStore(true, false);
}

void TrainingSteps::takeBatch() {
  auto& batch = batches.readTraining();
  KJ_IF_MAYBE(shared, oneThread) shared->note(batch.step, batch.draws);
  batches.set();
  charge(rpc::TracePoint::READ, state.times.read_s, 0);
}

// Makes one step with gradients that go to the store and parameters that come from it.
void TrainingSteps::stepWithStore(bool isLastOfEpoch, bool pushes) {
  auto& segments = facts.graph.segments;
  verb.restart_s();
  if (!isBatchSet) {
    OwnWork work(progress);
    takeBatch();
  }
  for (uint s = 0; s < segments.size(); s++) {
    store.await(state.step, segments[s].parameters.begin, segments[s].parameters.end);
    charge(rpc::TracePoint::PULL, state.times.pull_s, s);
    OwnWork work(progress);
    program.forward(nn::Phase::TRAIN, s);
    charge(rpc::TracePoint::FORWARD, state.times.forward_s, s);
  }
  OwnWork work(progress);
  // From here until the first push, nobody writes to the parameters.
  takeAverage();
  // The device still works on this step. Meanwhile the next batch goes to it, except at the end of
  // an epoch: validation then comes first.
  isBatchSet = batches.mayBeAhead() && !isLastOfEpoch;
  if (isBatchSet) takeBatch();
  nn::backwardAll(program, segments.size(), [&](uint s) {
    work.next();
    charge(rpc::TracePoint::BACKWARD, state.times.backward_s, s);
    if (pushes) store.push(state.step, segments[s].parameters.begin, segments[s].parameters.end);
    charge(rpc::TracePoint::PUSH, state.times.push_s, s);
  });
  state.last = program.result();
  lookAhead();
}

// Makes one step with a program that updates the parameters itself. The program runs one step
// behind. All time that the host waits for the program counts as `forward`.
void TrainingSteps::stepBy(nn::Trainer& own) {
  OwnWork work(progress);
  verb.restart_s();
  batches.readTraining();
  charge(rpc::TracePoint::READ, state.times.read_s, 0);
  batches.set();
  own.step(state.step);
  charge(rpc::TracePoint::FORWARD, state.times.forward_s, 0);
}

// Charges the time since the stopwatch was restarted to this verb, for this segment.
void TrainingSteps::charge(rpc::TracePoint point, double& verb_s, uint segment) {
  auto begun = verb.begun();
  verb.chargeTo(verb_s);
  KJ_IF_MAYBE(trace, parts.trace) {
    (*trace)->compute.add(point, parts.rank, state.step, segment, begun, verb.begun());
  }
}

// Applies the lookahead to the moving statistics, which no store has. It is due by the worker's own
// count of steps.
void TrainingSteps::lookAhead() {
  KJ_IF_MAYBE(lookahead, experiment.train.rules.lookahead) {
    uint workers = experiment.cluster.workers;
    uint updates = kj::max(1u, workers / experiment.kvstore.mode->stepsPerUpdate(workers));
    auto run = ownLengthOf(experiment, facts.passLength);
    auto own = lookahead->inStepsOf(updates);
    uint64_t place = run.placeOf(state.step);
    if (!own.isDueAfter(place, run)) return;
    own.apply(place, run, program.statistics(), slowStatistics);
  }
}

void TrainingSteps::divideBy(kj::Own<const io::Division> division, bool isMore) {
  batches.divideBy(kj::mv(division), state.step);
  isBatchSet = isBatchSet && isMore;
  if (isBatchSet) takeBatch();
}

void TrainingSteps::settle() {
  verb.restart_s();
  store.settle();
  charge(rpc::TracePoint::PULL, state.times.pull_s, 0);
}

void TrainingSteps::rest() {
  verb.restart_s();
  store.rest();
  charge(rpc::TracePoint::PULL, state.times.pull_s, 0);
}

void TrainingSteps::fetchSums() {
  KJ_IF_MAYBE(own, parts.trainer) {
    OwnWork work(progress);
    verb.restart_s();
    state.replaceSums(own->runningSums(), state.step == 1);
    state.last = program.result();
    charge(rpc::TracePoint::FORWARD, state.times.forward_s, 0);
    state.show(progress);
  }
}

void TrainingSteps::restartSums() {
  state.sums = {};
  KJ_IF_MAYBE(own, parts.trainer) own->restartSums();
}

void TrainingSteps::startLookahead() {
  nn::copy(program.statistics(), slowStatistics);
}

void TrainingSteps::takeAverage() {
  KJ_IF_MAYBE(own, ownAverage) own->take(state.step, program.parameters(), program.statistics());
}

kj::Maybe<const WeightAverage&> TrainingSteps::average() const {
  return ownAverage;
}

void TrainingSteps::visitState(configs::StateVisitor& visitor) {
  visitor.floats("worker.slow_statistics", slowStatistics);
  KJ_IF_MAYBE(own, ownAverage) own->visitState(visitor);
}

}  // namespace runner
