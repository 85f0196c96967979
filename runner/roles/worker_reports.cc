#include "runner/roles/worker_reports.h"

#include <kj/debug.h>

#include "runner/logs/role_names.h"
#include "runner/roles/store_updater.h"
#include "runner/system/terminal.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// Sets an event's loss and accuracy, which are means over images. A worker that joined when an
// epoch ended has none.
template <typename Builder>
void setMeans(Builder& event, const nn::BatchResult& sums) {
  if (sums.images == 0) return;
  event.setLoss(sums.meanLoss());
  event.setAccuracy(sums.accuracy());
}

// Sets the bytes, calls and delays of the connection to each server except number `without`.
void setTraffic(Event::Trained::Builder trained,
    kj::ArrayPtr<const rpc::RemoteStore::Traffic> traffic, kj::Maybe<uint> without) {
  uint64_t pushed_bytes = 0;
  uint64_t pulled_bytes = 0;
  auto servers = trained.initServers(traffic.size());
  for (auto i: kj::indices(traffic)) {
    KJ_IF_MAYBE(own, without) {
      if (*own == i) continue;
    }
    auto& from = traffic[i];
    pushed_bytes += from.pushed_bytes;
    pulled_bytes += from.pulled_bytes;
    servers[i].setCalls(from.calls);
    servers[i].setPushedBytes(from.pushed_bytes);
    servers[i].setPulledBytes(from.pulled_bytes);
    servers[i].setRoundTripsS(from.roundTrips / kj::NANOSECONDS * 1e-9);
    servers[i].setRoundTripMaxS(from.roundTripMax / kj::NANOSECONDS * 1e-9);
    servers[i].setWaitingMaxBytes(from.waitingMax_bytes);
    servers[i].setReconnects(from.reconnects);
    servers[i].setTransport(from.transport);
  }
  trained.setPushedBytes(pushed_bytes);
  trained.setPulledBytes(pulled_bytes);
}

}  // namespace

WorkerReports::WorkerReports(
    WorkerParts& parts, IoThread& ioThread, const TrainingState& state, bool isByHand)
    : parts(parts),
      experiment(parts.experiment),
      ioThread(ioThread),
      state(state),
      isByHand(isByHand) {}

// Returns how many updates the parameters have had. If a round needs all workers, every step is an
// update, even if the store has not answered the last one yet. Otherwise the number comes with the
// newest values that have arrived. If each push is an update, it is at least the number of the
// worker's own steps.
uint64_t WorkerReports::globalStep() const {
  switch (experiment.rounds().counted) {
    case rpc::Rounds::ALL:
      return state.step;
    case rpc::Rounds::EACH:
      return kj::max(state.step, parts.store->updates());
    case rpc::Rounds::FIRST:
    case rpc::Rounds::ANY:
      return parts.store->updates();
  }
  KJ_UNREACHABLE;
}

// Returns the rate of the latest update. An event at the end of an epoch thus reports the rate of
// that epoch, even if the schedule changes the rate with the next update.
double WorkerReports::learningRate() const {
  uint64_t updates = globalStep();
  return parts.updater.learningRate(updates > 0 ? updates - 1 : 0);
}

void WorkerReports::say(uint epoch, kj::StringPtr text, const nn::BatchResult& sums) const {
  if (!isByHand) return;
  constexpr uint DECIMALS = 4;
  tell(kj::str(roleName(Role::WORKER, parts.rank), ": epoch ", epoch, "/",
      parts.facts.epochs(experiment), " ", text, ": loss ", figureText(sums.meanLoss(), DECIMALS),
      ", accuracy ", figureText(sums.accuracy(), DECIMALS)));
}

void WorkerReports::begun() {
  trainingTime.restart_s();
  ioThread.report([&](Event::Builder event) {
    auto begun = event.initBegun();
    begun.setBatchesPerEpoch(parts.facts.stepsUntilEndOf(1, experiment));
    auto& devices = experiment.cluster.devices;
    begun.setDevices(devices.size());
    auto names = begun.initDeviceNames(devices.size());
    for (auto i: kj::indices(devices)) names.set(i, devices[i]);
    begun.setUpdates(placeOfUpdates(experiment, parts.trainer != nullptr));
    KJ_IF_MAYBE(why, whyBitsDiffer(experiment)) begun.setBits(*why);
  });
}

void WorkerReports::visitState(configs::StateVisitor& visitor) {
  double training_s = trainingTime.elapsed_s();
  double interval_s = intervalTime.elapsed_s();
  // In a new process, the batcher counts from 0 again.
  uint64_t badRecords = parts.batches->ofTraining().counts().badRecords;
  uint64_t badInEpoch = badRecords - badRecordsBefore;
  visitor.number("worker.training_s", training_s);
  visitor.number("worker.interval_s", interval_s);
  visitor.count("worker.interval_begin", intervalBegin);
  visitor.count("worker.bad_records", badInEpoch);
  trainingTime.goOnFrom(training_s);
  intervalTime.goOnFrom(interval_s);
  badRecordsBefore = badRecords - badInEpoch;
}

void WorkerReports::restartInterval() {
  intervalTime.restart_s();
  intervalBegin = state.step;
}

void WorkerReports::speed(uint epoch, uint done, bool partial, uint epochBatches) {
  uint64_t batches = state.step - intervalBegin;
  double seconds = intervalTime.elapsed_s();
  restartInterval();
  ioThread.report([&](Event::Builder event) {
    auto speed = event.initSpeed();
    speed.setEpoch(epoch);
    speed.setBatch(done);
    speed.setImagesPerS(double(batches) * experiment.data.batchSize / seconds);
    setMeans(speed, state.sums);
    speed.setBatchLoss(state.last.meanLoss());
    speed.setBatchAccuracy(state.last.accuracy());
    speed.setBatches(batches);
    speed.setIntervalS(seconds);
    speed.setTrainingS(trainingTime.elapsed_s());
    speed.setStep(state.step);
    speed.setGlobalStep(globalStep());
    speed.setLearningRate(learningRate());
    speed.setPartial(partial);
    speed.setEpochBatches(epochBatches);
  });
}

void WorkerReports::ended() {
  ioThread.report([&](Event::Builder event) {
    auto ended = event.initEnded();
    ended.setStep(state.step);
    ended.setGlobalStep(globalStep());
    ended.setTrainingS(trainingTime.elapsed_s());
    ended.setBatchLoss(state.last.meanLoss());
    ended.setValidates(parts.facts.validationRecords > 0);
  });
}

void WorkerReports::trained(uint epoch, uint64_t steps, double seconds) {
  say(epoch, "is trained", state.sums);
  ioThread.report([&](Event::Builder event) {
    auto trained = event.initTrained();
    trained.setEpoch(epoch);
    trained.setSteps(steps);
    trained.setImages(state.sums.images);
    setMeans(trained, state.sums);
    trained.setTimeS(seconds);
    trained.setReadS(state.times.read_s);
    trained.setForwardS(state.times.forward_s);
    trained.setBackwardS(state.times.backward_s);
    trained.setPushS(state.times.push_s);
    trained.setPullS(state.times.pull_s);
    auto counts = parts.batches->ofTraining().counts();
    trained.setReaderThreads(counts.threads);
    trained.setBadRecords(counts.badRecords - badRecordsBefore);
    badRecordsBefore = counts.badRecords;
    trained.setStep(state.step);
    trained.setGlobalStep(globalStep());
    trained.setLearningRate(learningRate());
    KJ_IF_MAYBE(remote, parts.remote) {
      // What a worker sends to its own shard uses no connection.
      bool own = experiment.kvstore.workersHoldShards();
      setTraffic(trained, remote->traffic(), own ? kj::Maybe<uint>(parts.rank) : nullptr);
    }
  });
}

void WorkerReports::badRecords(io::Batcher& batcher) {
  for (auto& reason: batcher.takeReports()) {
    ioThread.report([&](Event::Builder event) { event.initBadRecord().setReason(reason); });
  }
}

void WorkerReports::validated(
    uint epoch, const nn::BatchResult& result, bool isLast, kj::Maybe<kj::StringPtr> endsEarly) {
  if (result.images == 0) return;
  say(epoch, "is validated", result);
  ioThread.report([&](Event::Builder event) {
    auto validated = event.initValidated();
    validated.setEpoch(epoch);
    validated.setImages(result.images);
    setMeans(validated, result);
    validated.setStep(state.step);
    validated.setGlobalStep(globalStep());
    validated.setLast(isLast);
    validated.setViews(experiment.data.views(isLast).size());
    KJ_IF_MAYBE(why, endsEarly) validated.setEndsEarly(*why);
    if (experiment.log.topK > 0) {
      auto topK = validated.initTopK();
      topK.setK(experiment.log.topK);
      topK.setAccuracy(result.topKAccuracy());
    }
  });
}

void WorkerReports::averaged(uint epoch, const nn::BatchResult& result) {
  if (result.images == 0) return;
  ioThread.report([&](Event::Builder event) {
    auto averaged = event.initAveraged();
    averaged.setEpoch(epoch);
    averaged.setImages(result.images);
    setMeans(averaged, result);
  });
}

void WorkerReports::best(const BestEpoch& best) {
  ioThread.report([&](Event::Builder event) {
    event.initBest().setEpoch(best.epoch);
    event.getBest().setAccuracy(best.accuracy);
  });
}

}  // namespace runner
