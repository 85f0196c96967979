// The loop: read, forward, backward, push, pull. Read this second, after main.cc.
#include <kj/debug.h>
#include <math.h>

#include "configs/language/failure.h"
#include "io/batches/first_images.h"
#include "nn/loops/floats.h"
#include "nn/network/initializer.h"
#include "nn/softmax.h"
#include "rpc/shard/shard_server.h"
#include "rpc/shared_memory/shared_layout.h"
#include "rpc/store/remote_store.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/verb_times.h"
#include "runner/roles/batches.h"
#include "runner/roles/io_thread.h"
#include "runner/roles/roles.h"
#include "runner/roles/store_updater.h"
#include "runner/roles/trace_file.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

// Sets an event's loss and accuracy, which are means over images.
template <typename Builder>
void setMeans(Builder& event, const nn::BatchResult& sums) {
  event.setLoss(sums.lossSum / sums.images);
  event.setAccuracy(double(sums.correct) / sums.images);
}

// What is reported of the steps since the last report.
struct Interval {
  Stopwatch time;
  uint64_t begin = 0;  // the first of them

  void restart(uint64_t step) {
    time.restart_s();
    begin = step;
  }
};

// A worker's place in the job. Joins at once, while the rest of the worker is made ready.
struct Place {
  Place(const LoadedExperiment& loaded, const RoleOptions& options)
      : facts(KJ_ASSERT_NONNULL(loaded.experiment)),
        ioThread(kj::heap<IoThread>(loaded, options, jobMessageLimits(facts.graph), progress)) {}

  const ModelFacts facts;
  LiveProgress progress;
  kj::Own<IoThread> ioThread;
};

// One worker's compute thread.
class Worker {
public:
  // `place` must outlive it. Its io thread ends with this object.
  Worker(Place& place, const LoadedExperiment& loaded, const RoleOptions& options)
      : experiment(KJ_ASSERT_NONNULL(loaded.experiment)),
        rank(options.index),
        facts(place.facts),
        progress(place.progress),
        ioThread(place.ioThread),
        placement(placementOf(experiment, facts.graph)),
        trace(traceOf(options, experiment, facts)),
        updater(experiment, facts),
        dataset(io::openDataset(experiment.data, [](kj::StringPtr, uint64_t, uint64_t) {})),
        memory(newMemory()),
        updates(updater.byValue()),
        program(programOf(experiment, facts.graph, nullptr, gradientsInMemory())),
        batches(*program, *dataset, experiment.data, experiment.train.seed,
            experiment.cluster.workers, rank),
        meanLogits(nn::zeros(experiment.data.batchSize * size_t(facts.graph.classes))) {
    KJ_IF_MAYBE(own, updates) trainer = program->trainBy(*own);
    store = trainer != nullptr
                ? rpc::newNoStore()
                : experiment.kvstore.mode->newStore({placement, experiment.rounds(), rank, updater,
                      program->parameters(), program->gradients(), shared()});
    remote = store->remote();
    KJ_IF_MAYBE(r, remote) {
      KJ_IF_MAYBE(own, trace) r->traceTo(**own);
    }
  }

  // The io thread uses the store, which is younger than itself.
  ~Worker() noexcept(false) { ioThread = nullptr; }

  void run() {
    startTalking();
    initialize();
    reportBegun();
    uint epochs = facts.epochs(experiment);
    for (uint epoch = 1; epoch <= epochs; epoch++) {
      train(epoch);
      if (epoch == epochs) reportEnded();
      validate(epoch, epoch == epochs);
    }
    bool first = rank == 0;
    if (first) {
      requireFinite(facts.graph.keys, program->parameters());
      requireFinite(facts.graph.statistics, program->statistics());
    }
    ioThread->finish(
        first ? program->parameters() : nullptr, first ? program->statistics() : nullptr);
  }

  // What was recorded, if it was: after run().
  void leaveTrace(const RoleOptions& options) {
    KJ_IF_MAYBE(own, trace) {
      auto ahead = ioThread->clockAhead();
      ioThread = nullptr;
      writeTrace(**own, experiment, options, placement, facts.graph.keys, ahead);
    }
  }

private:
  kj::Maybe<kj::Own<rpc::SharedMemory>> newMemory() const {
    if (!experiment.kvstore.sharesMemory()) return nullptr;
    return rpc::newWorkerMemory(placement);
  }

  kj::Maybe<rpc::SharedMemory&> shared() {
    return memory.map([](auto& own) -> rpc::SharedMemory& { return *own; });
  }

  // For a program whose gradients are pushed as they are.
  kj::ArrayPtr<float> gradientsInMemory() const {
    if (experiment.kvstore.mode->stepsAlone() != nullptr) return nullptr;
    KJ_IF_MAYBE(own, memory) return rpc::WorkerLayout(placement).gradients((*own)->bytes());
    return nullptr;
  }

  void startTalking() {
    kj::Maybe<IoThread::MakeShard> makeShard;
    if (experiment.kvstore.workersHoldShards()) {
      auto& updater = *ownShardUpdater.emplace(shardUpdater(experiment, facts));
      makeShard = [this, &updater](kj::UnixEventPort& port) {
        kj::Maybe<kj::UnixEventPort&> sharing;
        if (experiment.kvstore.sharesMemory()) sharing = port;
        kj::Maybe<rpc::ShardTrace&> shardTrace;
        KJ_IF_MAYBE(own, trace) {
          shardTrace = (*own)->ofShard(experiment.cluster.workers, placement.slices.size());
        }
        return rpc::newShardServer(
            placement, rank, experiment.rounds(), updater, sharing, shardTrace);
      };
    }
    ioThread->start(remote, *experiment.kvstore.transport,
        rpc::limitsFor(placement, experiment.cluster.connectionSilence()),
        experiment.cluster.silence(), kj::mv(makeShard));
  }

  void initialize() {
    auto images = io::firstImages(*dataset, experiment.data, nn::imagesToInitialize(facts.graph));
    nn::initialize(facts.graph, experiment.model.initializer, experiment.train.seed,
        program->parameters(), program->statistics(), images);
    slowStatistics = kj::heapArray<float>(program->statistics());
    store->initialize();
  }

  void train(uint epoch) {
    progress.epoch = epoch;
    times = {};
    restartSums();
    showSums();
    Stopwatch epochTime;
    uint64_t begin = step;
    uint64_t end = facts.stepsUntilEndOf(epoch, experiment);
    bool inEpoch = experiment.log.style->count == LogStyle::IN_EPOCH;
    uint64_t counted = inEpoch ? begin : 0;
    if (inEpoch || epoch == 1) interval.restart(begin);
    while (step < end) {
      trainStep(step + 1 == end);
      bool full = (step - counted) % experiment.log.every == 0;
      if (full || (inEpoch && step == end)) {
        look();
        reportSpeed(epoch, step - counted, !full, end - begin);
      }
    }
    look();
    verb.restart_s();
    store->rest();
    charge(rpc::Mark::PULL, times.pull_s, 0);
    reportTrained(epoch, step - begin, epochTime.elapsed_s());
    reportBadRecords(batches.ofTraining());
  }

  void trainStep(bool isLast) {
    KJ_IF_MAYBE(own, trainer) {
      stepBy(*own);
    } else {
      stepWithStore(isLast);
    }
    step++;
    progress.step = step;
    if (trainer == nullptr) {
      add(last, step == 1);
      showSums();
    } else if (progress.wasRead.exchange(false)) {
      look();
    }
  }

  void takeBatch() {
    batches.readTraining();
    batches.set();
    charge(rpc::Mark::READ, times.read_s, 0);
  }

  // `isLast`: of an epoch.
  void stepWithStore(bool isLast) {
    auto& segments = facts.graph.segments;
    verb.restart_s();
    if (!isAhead) takeBatch();
    for (uint s = 0; s < segments.size(); s++) {
      store->await(step, segments[s].parameters.begin, segments[s].parameters.end);
      charge(rpc::Mark::PULL, times.pull_s, s);
      program->forward(nn::Phase::TRAIN, s);
      charge(rpc::Mark::FORWARD, times.forward_s, s);
    }
    // Under the work of this step. Validation comes between the last of an epoch and the next.
    isAhead = batches.mayBeAhead() && !isLast;
    if (isAhead) takeBatch();
    nn::backwardAll(*program, segments.size(), [&](uint s) {
      charge(rpc::Mark::BACKWARD, times.backward_s, s);
      store->push(step, segments[s].parameters.begin, segments[s].parameters.end);
      charge(rpc::Mark::PUSH, times.push_s, s);
    });
    last = program->result();
    lookAhead();
  }

  // The program runs behind by a step: whatever the host waits for it is `forward`.
  void stepBy(nn::Trainer& own) {
    verb.restart_s();
    batches.readTraining();
    charge(rpc::Mark::READ, times.read_s, 0);
    batches.set();
    own.step(step);
    charge(rpc::Mark::FORWARD, times.forward_s, 0);
  }

  // Fetches what the epoch has come to so far, where that is not known here.
  void look() {
    KJ_IF_MAYBE(own, trainer) {
      verb.restart_s();
      sums = finite(own->runningSums(), step == 1);
      last = program->result();
      charge(rpc::Mark::FORWARD, times.forward_s, 0);
      showSums();
    }
  }

  void restartSums() {
    sums = {};
    KJ_IF_MAYBE(own, trainer) own->restartSums();
  }

  void showSums() {
    progress.lossSum = sums.lossSum;
    progress.correct = sums.correct;
    progress.images = sums.images;
  }

  // What the compute thread did since the stopwatch was started was this verb, of a segment.
  void charge(rpc::Mark mark, double& verb_s, uint segment) {
    auto begun = verb.begun();
    verb.chargeTo(verb_s);
    KJ_IF_MAYBE(own, trace) (*own)->compute.add(mark, rank, step, segment, begun, verb.begun());
  }

  // Of the moving statistics, which never reach a store: by the worker's own steps.
  void lookAhead() {
    KJ_IF_MAYBE(lookahead, experiment.train.rules.lookahead) {
      uint workers = experiment.cluster.workers;
      uint updates = kj::max(1u, workers / experiment.kvstore.mode->stepsPerUpdate(workers));
      nn::RunLength run{.updatesPerEpoch = 0, .updates = facts.steps(experiment)};
      auto own = lookahead->inStepsOf(updates);
      if (!own.isDueAfter(step, run)) return;
      own.apply(step, run, program->statistics(), slowStatistics);
    }
  }

  void add(const nn::BatchResult& more, bool isFirst = false) {
    auto& result = finite(more, isFirst);
    sums.lossSum += result.lossSum;
    sums.correct += result.correct;
    sums.images += result.images;
  }

  // `isFirst`: of the first step, whose loss follows from the initial values alone.
  const nn::BatchResult& finite(const nn::BatchResult& result, bool isFirst = false) const {
    if (!isfinite(result.lossSum)) {
      configs::fail("the loss is ", result.lossSum, " at step ", step, " (epoch ",
          progress.epoch.load(), ")",
          isFirst ? ", before the first update of this worker: check the scale of the images "
                    "(data.augment.scale, mean and deviation) and model.init"
                  : ": training diverged; lower train.optimizer.learning_rate");
    }
    return result;
  }

  // A loss need not show it: batch norm divides by an infinite deviation and gives 0.
  template <typename Named>
  static void requireFinite(const kj::Array<Named>& arrays, kj::ArrayPtr<const float> values) {
    for (auto& array: arrays) {
      for (float x: values.slice(array.offset, array.offset + array.size)) {
        if (isfinite(x)) continue;
        configs::fail("`", array.name, "` holds ", x,
            " at the end of the run: training diverged; lower train.optimizer.learning_rate");
      }
    }
  }

  // All workers validate alike: with the newest weights, and the mean of their moving statistics.
  void validate(uint epoch, bool isLast) {
    auto trained = ioThread->meet(epoch, MeetingPoint::TRAINED, sums, program->statistics());
    nn::copy(trained.statistics, program->statistics());
    store->refresh();

    restartSums();
    batches.ofValidation().restart(experiment.data.views(isLast));
    for (;;) {
      KJ_IF_MAYBE(batch, batches.readValidation()) {
        batches.set();
        for (uint s = 0; s < facts.graph.segments.size(); s++) {
          program->forward(nn::Phase::VALIDATE, s);
        }
        // What the program adds up itself is fetched once.
        if (trainer != nullptr && batch->views == 1) continue;
        KJ_IF_MAYBE(result, judged(*batch)) add(*result);
      } else {
        break;
      }
    }
    KJ_IF_MAYBE(own, trainer) {
      if (experiment.data.views(isLast).size() == 1) sums = finite(own->runningSums());
    }
    reportBadRecords(batches.ofValidation());
    auto all = ioThread->meet(epoch, MeetingPoint::VALIDATED, sums, nullptr);
    bool whole = experiment.data.validation == io::ValidationPart::WHOLE;
    reportValidated(epoch, whole ? sums : all.result, isLast);
  }

  // What the program's logits say of a batch of validation: those of several views are averaged,
  // and say nothing before the last.
  kj::Maybe<nn::BatchResult> judged(const io::Batch& batch) {
    if (batch.views == 1) return program->result();
    auto logits = program->logits();
    for (auto i: kj::indices(meanLogits)) meanLogits[i] += batch.weight * logits[i];
    if (!batch.isLastView) return nullptr;
    auto result = nn::judge(meanLogits, batch.labels);
    for (auto& x: meanLogits) x = 0;
    return result;
  }

  // Updates of the parameters so far. Where a round takes all workers, those are the steps, whether
  // or not the last one is answered yet; else what the newest values that came hold, and where each
  // push is an update, own steps at least.
  uint64_t globalStep() const {
    switch (experiment.rounds().counted) {
      case rpc::Rounds::ALL:
        return step;
      case rpc::Rounds::EACH:
        return kj::max(step, store->updates());
      case rpc::Rounds::FIRST:
      case rpc::Rounds::ANY:
        return store->updates();
    }
    KJ_UNREACHABLE;
  }

  // Of the latest update: an event at the end of an epoch reports the rate of that epoch, even if
  // the schedule changes the rate with the next update.
  double learningRate() const {
    uint64_t updates = globalStep();
    return updater.learningRate(updates > 0 ? updates - 1 : 0);
  }

  void reportBegun() {
    trainingTime.restart_s();
    ioThread->report([&](Event::Builder event) {
      auto begun = event.initBegun();
      begun.setBatchesPerEpoch(facts.stepsUntilEndOf(1, experiment));
      auto& devices = experiment.cluster.devices;
      begun.setDevices(devices.size());
      auto names = begun.initDeviceNames(devices.size());
      for (auto i: kj::indices(devices)) names.set(i, devices[i]);
      begun.setUpdates(placeOfUpdates(experiment, trainer != nullptr));
      KJ_IF_MAYBE(why, whyBitsDiffer(experiment)) begun.setBits(*why);
    });
  }

  void reportSpeed(uint epoch, uint done, bool partial, uint epochBatches) {
    uint64_t batches = step - interval.begin;
    double seconds = interval.time.elapsed_s();
    interval.restart(step);
    ioThread->report([&](Event::Builder event) {
      auto speed = event.initSpeed();
      speed.setEpoch(epoch);
      speed.setBatch(done);
      speed.setImagesPerS(double(batches) * experiment.data.batchSize / seconds);
      setMeans(speed, sums);
      speed.setBatchLoss(last.lossSum / last.images);
      speed.setBatchAccuracy(double(last.correct) / last.images);
      speed.setBatches(batches);
      speed.setIntervalS(seconds);
      speed.setTrainingS(trainingTime.elapsed_s());
      speed.setStep(step);
      speed.setGlobalStep(globalStep());
      speed.setLearningRate(learningRate());
      speed.setPartial(partial);
      speed.setEpochBatches(epochBatches);
    });
  }

  void reportEnded() {
    ioThread->report([&](Event::Builder event) {
      auto ended = event.initEnded();
      ended.setStep(step);
      ended.setGlobalStep(globalStep());
      ended.setTrainingS(trainingTime.elapsed_s());
      ended.setBatchLoss(last.lossSum / last.images);
      ended.setValidates(facts.validationRecords > 0);
    });
  }

  void reportTrained(uint epoch, uint64_t steps, double seconds) {
    ioThread->report([&](Event::Builder event) {
      auto trained = event.initTrained();
      trained.setEpoch(epoch);
      trained.setSteps(steps);
      trained.setImages(sums.images);
      setMeans(trained, sums);
      trained.setTimeS(seconds);
      trained.setReadS(times.read_s);
      trained.setForwardS(times.forward_s);
      trained.setBackwardS(times.backward_s);
      trained.setPushS(times.push_s);
      trained.setPullS(times.pull_s);
      auto badRecords = batches.ofTraining().counts().badRecords;
      trained.setBadRecords(badRecords - badRecordsBefore);
      badRecordsBefore = badRecords;
      trained.setStep(step);
      trained.setGlobalStep(globalStep());
      trained.setLearningRate(learningRate());
      KJ_IF_MAYBE(r, remote) {
        reportTraffic(trained, r->traffic());
      }
    });
  }

  void reportTraffic(
      Event::Trained::Builder trained, kj::ArrayPtr<const rpc::RemoteStore::Traffic> traffic) {
    uint64_t pushed_bytes = 0;
    uint64_t pulled_bytes = 0;
    auto servers = trained.initServers(traffic.size());
    for (auto i: kj::indices(traffic)) {
      // What goes to the worker's own shard goes over no connection.
      if (ownShardUpdater != nullptr && i == rank) continue;
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

  // Records that were left out, by name.
  void reportBadRecords(io::Batcher& batcher) {
    for (auto& reason: batcher.takeReports()) {
      ioThread->report([&](Event::Builder event) { event.initBadRecord().setReason(reason); });
    }
  }

  void reportValidated(uint epoch, const nn::BatchResult& result, bool isLast) {
    // Without validation images there are no figures.
    if (result.images == 0) return;
    ioThread->report([&](Event::Builder event) {
      auto validated = event.initValidated();
      validated.setEpoch(epoch);
      validated.setImages(result.images);
      setMeans(validated, result);
      validated.setStep(step);
      validated.setGlobalStep(globalStep());
      validated.setLast(isLast);
      validated.setViews(experiment.data.views(isLast).size());
    });
  }

  const Experiment& experiment;
  const uint rank;
  const ModelFacts& facts;
  LiveProgress& progress;
  kj::Own<IoThread>& ioThread;
  const rpc::Placement placement;
  kj::Maybe<kj::Own<rpc::Trace>> trace;  // what both threads record, if they are to
  StoreUpdater updater;
  kj::Maybe<kj::Own<rpc::Updater>> ownShardUpdater;  // of the shard that this worker holds, if any
  kj::Own<io::Dataset> dataset;
  kj::Maybe<kj::Own<rpc::SharedMemory>>
      memory;                               // where the gradients lie, if servers may read them
  const kj::Maybe<nn::ValueRules> updates;  // for a program that can make them itself
  kj::Own<nn::Program> program;
  Batches batches;
  kj::Maybe<nn::Trainer&> trainer;  // the program, if it does
  kj::Array<float> meanLogits;      // N×classes: over the views of a validation batch so far
  kj::Own<rpc::KvStore> store;
  kj::Maybe<rpc::RemoteStore&> remote;  // of it, if it has servers

  kj::Array<float> slowStatistics;  // of the lookahead
  bool isAhead = false;             // the batch of the next step is set
  uint64_t step = 0;                // steps done, from the beginning of the run
  uint64_t badRecordsBefore = 0;    // before this epoch
  nn::BatchResult sums;             // of the epoch so far
  nn::BatchResult last;             // of the last training batch
  VerbTimes times;                  // likewise
  Stopwatch verb;
  Interval interval;
  Stopwatch trainingTime;  // since the first step
};

}  // namespace

void runWorker(const LoadedExperiment& loaded, const RoleOptions& options) {
  Place place(loaded, options);
  kj::Own<Worker> worker;
  auto run = [&]() {
    worker = kj::heap<Worker>(place, loaded, options);
    worker->run();
  };
  KJ_IF_MAYBE(failure, kj::runCatchingExceptions(run)) {
    // A server that this worker cannot reach may be there for the coordinator and the launcher.
    if (!options.launched || rpc::isUnreachable(*failure)) {
      // If the coordinator hears nothing, that is no news for whoever started this role.
      kj::String reason;
      auto tell = [&]() { reason = place.ioThread->tellFailure(*failure); };
      if (kj::runCatchingExceptions(tell) == nullptr) {
        kj::throwFatalException(
            kj::Exception(failure->getType(), __FILE__, __LINE__, kj::mv(reason)));
      }
    }
    kj::throwFatalException(kj::mv(*failure));
  }
  worker->leaveTrace(options);
}

}  // namespace runner
