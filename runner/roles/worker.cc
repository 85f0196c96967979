// The loop of a worker: steps, checkpoints, changes of the members, validations. Read this second,
// after main.cc.
#include <kj/debug.h>
#include <signal.h>

#include "configs/language/failure.h"
#include "configs/language/warning.h"
#include "io/batches/first_images.h"
#include "nn/chosen_plans.h"
#include "nn/loops/floats.h"
#include "nn/network/initializer.h"
#include "runner/checkpoints/checkpoints.h"
#include "runner/checkpoints/saved_part.h"
#include "runner/checkpoints/weights.h"
#include "runner/experiment/devices.h"
#include "runner/experiment/model_facts.h"
#include "runner/experiment/run_length.h"
#include "runner/roles/best_epoch.h"
#include "runner/roles/best_weights.h"
#include "runner/roles/instruction_set_choice.h"
#include "runner/roles/io_thread.h"
#include "runner/roles/joining_worker.h"
#include "runner/roles/member_plan.h"
#include "runner/roles/part_transfer.h"
#include "runner/roles/roles.h"
#include "runner/roles/trace_file.h"
#include "runner/roles/training_state.h"
#include "runner/roles/training_steps.h"
#include "runner/roles/validation.h"
#include "runner/roles/worker_parts.h"
#include "runner/roles/worker_reports.h"
#include "runner/system/interrupts.h"
#include "runner/system/reason.h"
#include "runner/weights/start.h"
#include "runner/weights/weights_notes.h"

namespace runner {

namespace {

kj::Maybe<kj::Own<const MemberPlan>> planOf(const RoleOptions& options, uint seats) {
  if (options.membershipOf.size() == 0) return nullptr;
  RunFolder folder{kj::str(options.membershipOf)};
  return kj::Own<const MemberPlan>(kj::heap<MemberPlan>(folder, seats));
}

double accuracyOf(const nn::BatchResult& sums) {
  return sums.images == 0 ? 0 : sums.accuracy();
}

// One worker's compute thread.
class Worker {
public:
  // `joining` must outlive it. The io thread of `joining` ends with this object.
  Worker(JoiningWorker& joining, const LoadedExperiment& loaded, const RoleOptions& options)
      : parts(loaded, options, joining.facts, joining.progress,
            [&]() {
              joining.chooseInstructionSet(loaded);
              return joining.fetchSaved();
            }),
        experiment(parts.experiment),
        facts(parts.facts),
        program(*parts.program),
        batches(*parts.batches),
        store(*parts.store),
        progress(joining.progress),
        ioThread(joining.ioThread),
        digest(loaded.digest),
        resolved(loaded.resolved),
        plan(planOf(options, experiment.cluster.seats())),
        oneThread(options.oneThread),
        saved(joining.saved),
        enters(joining.enters),
        steps(parts, state, progress, oneThread),
        bestWeights(facts.graph),
        reports(parts, *ioThread, state, !options.launched),
        validation(parts, state, reports, progress) {}

  // The io thread uses the store, so it must end first.
  ~Worker() noexcept(false) { ioThread = nullptr; }

  void run() {
    if (enters) {
      KJ_IF_MAYBE(part, ioThread->enter()) {
        saved = kj::mv(*part);
      } else {
        return;
      }
    }
    bool goesOn = saved.size() > 0;
    if (goesOn) {
      restore();
      saved = nullptr;
    }
    if (enters) forgetOwn();
    firstStep = state.step;
    parts.connect(*ioThread, enters ? firstStep : 0);
    if (goesOn) {
      store.resume();
      // The file in the run's folder may belong to an epoch that the resumed run has yet to repeat.
      if (!bestWeights.isEmpty()) sendBest();
    } else {
      initialize();
      reports.begun();
    }
    bool isLast = false;
    for (uint epoch = kj::max(1u, state.epoch); !isLast; epoch++) {
      if (!goesOn) beginEpoch(epoch);
      goesOn = false;
      train(epoch);
      isLast = epochEnd == facts.steps(experiment, division);
      if (isLast) reports.ended();
      isLast = validate(epoch, isLast);
    }
    validateAverage();
    bool sends = sendsParameters();
    if (sends) {
      OwnWork work(progress);
      requireFinite(facts.graph, program.parameters(), program.statistics());
    }
    ioThread->finish(
        sends ? program.parameters() : nullptr, sends ? program.statistics() : nullptr);
  }

  // Writes the trace, if there is one. Call after run().
  void leaveTrace(const RoleOptions& options) {
    KJ_IF_MAYBE(trace, parts.trace) {
      auto ahead = ioThread->clockAhead();
      ioThread = nullptr;
      writeTrace(**trace, experiment, options, parts.placement, facts.graph.keys, ahead);
    }
  }

private:
  void initialize() {
    chooseWeights();
    store.initialize();
  }

  void chooseWeights() {
    OwnWork work(progress);
    auto images =
        io::firstImages(*parts.dataset, experiment.data, nn::imagesToInitialize(facts.graph));
    nn::initialize(facts.graph, experiment.model.initializer, experiment.train.seed,
        program.parameters(), program.statistics(), images);
    KJ_IF_MAYBE(start, experiment.start) {
      startFrom(*start, facts.graph, program.parameters(), program.statistics());
    }
    steps.startLookahead();
  }

  // Restores the saved state of this worker.
  void restore() {
    OwnWork work(progress);
    bestWeights.prepareFor(saved);
    auto load = [&]() {
      PartLoader loader(saved);
      visitState(loader);
      // Only the state that a newcomer gets from another worker's memory may have these arrays.
      if (loader.has(SENT_PARAMETERS)) loader.floats(SENT_PARAMETERS, program.parameters());
      loader.finish();
    };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(load)) {
      configs::fail(
          workerPartName(parts.rank), " of the checkpoint cannot be used: ", reasonOf(*e));
    }
    // A checkpoint at a step at which workers join does not have them yet. If this run repeats the
    // joins of another one, the members stop at that step again. A newcomer does not: the members
    // have just stopped for it.
    if (enters || !isJoinPlanned()) savedAt = state.step;
    if (auto missing = nn::missingPlans()) {
      configs::warn(kj::str("this device or its libraries no longer have the plans with which ",
          "the run has computed ", missing,
          " convolutions so far: results may be rounded differently than in an uninterrupted run"));
    }
    if (!experiment.checkpoint.keepBest) bestWeights.drop();
    bool lacksBest = experiment.checkpoint.keepBest && best.epoch > 0 && bestWeights.isEmpty();
    if (lacksBest && parts.rank == 0) {
      configs::warn(kj::str(
          "checkpoint.keep_best was not set before, so the weights of the best epoch so "
          "far, epoch ",
          best.epoch, ", were not kept. best.safetensors is written when a later epoch is better"));
    }
  }

  // Visits all state that this worker keeps from step to step.
  void visitState(configs::StateVisitor& visitor) {
    state.visitState(visitor);
    reports.visitState(visitor);
    double epoch_s = epochTime.elapsed_s();
    visitor.number("worker.epoch_s", epoch_s);
    epochTime.goOnFrom(epoch_s);
    program.visitState(visitor);
    steps.visitState(visitor);
    store.visitState(visitor);
    best.visitState(visitor);
    bestWeights.visitState(visitor);
  }

  // Whether this worker sends its parameters to the coordinator. All workers have the same ones, so
  // rank 0 sends them. In a job that continues without lost workers, rank 0 may be missing, so
  // every worker sends them.
  bool sendsParameters() const { return parts.rank == 0 || experiment.cluster.onLoss->continues; }

  // Forgets the donor's own sums, times and residuals, after a newcomer has restored the state of
  // the donor.
  void forgetOwn() {
    state.sums = {};
    state.times = {};
    store.forgetOwn();
  }

  // Whether a worker joined at this step in the run whose members this run repeats.
  bool isJoinPlanned() const {
    KJ_IF_MAYBE(known, plan) return (*known)->joiningAt(state.step).size() > 0;
    return false;
  }

  // If the run whose members this run repeats lost this worker at this step, loses it here too.
  void leaveIfPlanned(uint epoch) {
    KJ_IF_MAYBE(known, plan) {
      KJ_IF_MAYBE(loss, (*known)->lossOf(parts.rank, firstStep)) {
        if (loss->step != state.step || loss->epoch != epoch) return;
        if (loss->left) leave();
        ioThread->awaitSent();
        store.settle();
        if (loss->slices.size() > 0) {
          steps.makeWithoutPushes();
          store.pushLast(state.step, loss->slices);
        }
        KJ_IF_MAYBE(shared, oneThread) shared->die();
        ::raise(SIGKILL);
      }
    }
  }

  // Leaves the job if a signal asked for it, but not before this worker has made a step.
  void leaveIfAsked() {
    if (ioThread->stopPoint().isToLeave() && state.step > firstStep) leave();
  }

  // Ends this process between two steps, when all its pushes were answered.
  [[noreturn]] void leave() {
    store.settle();
    ioThread->awaitSent();
    ioThread->leave();
    KJ_IF_MAYBE(shared, oneThread) shared->die();
    endInterrupted();
  }

  // Applies newly reported changes of the members, between two steps.
  void heedChanges(uint epoch) {
    KJ_IF_MAYBE(changes, ioThread->stopPoint().takeChanges()) {
      OwnWork work(progress);
      auto divide = [&]() {
        return kj::heap<io::Division>(divisionOf(experiment, facts.passLength, *changes));
      };
      ownDivision = divide();
      division = *KJ_ASSERT_NONNULL(ownDivision);
      setEnd(epoch);
      steps.divideBy(divide(), state.step < stretchEnd);
      ioThread->stopPoint().moveEnd(stretchEnd);
    }
  }

  // Finds the end of this epoch, and the step before it at which the worker meets the others.
  void setEnd(uint epoch) {
    epochEnd = stretchEnd = facts.stepsUntilEndOf(epoch, experiment, division);
    if (!experiment.changesAtEpochEnds()) return;
    // Some of the other workers may not know of a lost worker yet, and believe that the epoch ends
    // at this step.
    KJ_IF_MAYBE(known, division) {
      stretchEnd = kj::min(epochEnd, known->nextChangeAfter(state.step));
    }
  }

  // Whether the division of the records changes at this step.
  bool isDividedAnew() const {
    KJ_IF_MAYBE(known, division) return known->nextChangeAfter(state.step - 1) == state.step;
    return false;
  }

  // In modes that change members at ends of epochs: rests, and waits until all workers have made
  // their steps. Returns whether this worker must make more steps, with the records of a lost
  // worker.
  bool takesOver(uint epoch) {
    if (!experiment.changesAtEpochEnds()) return false;
    store.rest();
    auto met = ioThread->meet(epoch, state.step, MeetingPoint::STEPPED, {}, nullptr);
    if (!met.again) return false;
    if (experiment.rounds().needsRest()) store.refresh();
    heedChanges(epoch);
    setEnd(epoch);
    ioThread->stopPoint().moveEnd(stretchEnd);
    return true;
  }

  // Saves the job between two steps if the experiment or the coordinator asks for it. Returns
  // whether it did.
  bool saveIfDue() {
    auto& stops = ioThread->stopPoint();
    bool isDue = savesNext || isJoinPlanned();
    KJ_IF_MAYBE(every, experiment.checkpoint.every_steps) {
      isDue = isDue || (state.step > 0 && state.step % *every == 0);
    }
    if (stops.isAsked(state.step)) isDue = ioThread->isToBeSaved(state.step) || isDue;
    bool saves = isDue && savedAt != kj::Maybe<uint64_t>(state.step);
    if (saves) save();
    savesNext = false;
    stops.goOn(state.step);
    return saves;
  }

  // Returns the state that this worker needs to continue from here.
  SavedPart ownPart() {
    OwnWork work(progress);
    PartSaver saver(saved_bytes);
    visitState(saver);
    if (sendsParameters() && !store.areParametersOnShards()) {
      saver.floats(SENT_PARAMETERS, program.parameters());
    }
    auto plans = nn::chosenPlans();
    auto notes = KJ_MAP(plan, plans) {
      return Note{plan.problem, kj::str(plan.name)};
    };
    return saver.finish(notes);
  }

  void save() {
    store.settle();
    auto part = ownPart();
    saved_bytes = part.values.size();
    ioThread->meet(state.epoch, state.step, MeetingPoint::SAVED, {}, nullptr);
    if (experiment.rounds().needsRest()) store.refresh();
    ioThread->send(state.step, Part::WORKER, kj::mv(part));
    savedAt = state.step;
  }

  void beginEpoch(uint epoch) {
    state.epoch = epoch;
    state.times = {};
    steps.restartSums();
    epochTime.restart_s();
    bool inEpoch = experiment.log.style->count == LogStyle::IN_EPOCH;
    if (inEpoch || epoch == 1) reports.restartInterval();
  }

  // Trains for one epoch, or for the rest of it.
  void train(uint epoch) {
    state.show(progress);
    setEnd(epoch);
    ioThread->stopPoint().beginEpoch(state.step, stretchEnd);
    heedChanges(epoch);
    uint64_t begin = facts.stepsUntilEndOf(epoch - 1, experiment, division);
    bool inEpoch = experiment.log.style->count == LogStyle::IN_EPOCH;
    uint64_t counted = inEpoch ? begin : 0;
    do {
      while (state.step < stretchEnd) {
        bool saved = saveIfDue();
        heedChanges(epoch);
        // The members may have changed. Then the epoch may be over, or the worker asked to stop
        // here.
        if (saved) continue;
        leaveIfPlanned(epoch);
        leaveIfAsked();
        steps.make(state.step + 1 == stretchEnd);
        // Reports these before the next checkpoint, so that a run that continues from it does not
        // lose any of them.
        reports.badRecords(batches.ofTraining());
        bool continues = experiment.cluster.onLoss->continues && !experiment.changesAtEpochEnds();
        if (continues && (state.step == epochEnd || isDividedAnew())) {
          // If a worker is lost in the last step of an epoch, the epoch ends later. All workers
          // that are lost in that step leave at the same later step. A worker that knows of at most
          // one of them therefore waits until its pushes are answered. By then it knows of all.
          steps.settle();
          heedChanges(epoch);
        }
        uint64_t done = state.step - counted;
        bool full = done % experiment.log.every == 0;
        if (full || (inEpoch && state.step == epochEnd)) {
          steps.fetchSums();
          reports.speed(epoch, done, !full, epochEnd - begin);
        }
      }
    } while (takesOver(epoch));
    steps.fetchSums();
    // In modes that change members at ends of epochs, takesOver() has already rested.
    if (!experiment.changesAtEpochEnds()) steps.rest();
    leaveIfPlanned(epoch);
    reports.trained(epoch, state.step - begin, epochTime.elapsed_s());
  }

  // Returns why train.early_stop ends the run after this epoch. Null if the run continues.
  kj::Maybe<kj::String> whyEndsEarly(uint epoch) const {
    KJ_IF_MAYBE(stop, experiment.train.earlyStop) {
      if (best.epoch > 0 && epoch >= best.epoch + stop->patience) {
        return kj::str("no epoch was better than epoch ", best.epoch,
            ", whose validation accuracy is ", best.accuracy);
      }
    }
    return nullptr;
  }

  // Validates with the newest weights, and with the mean of all workers' moving statistics. Returns
  // whether the run is over.
  bool validate(uint epoch, bool isLastEpoch) {
    auto trained =
        ioThread->meet(epoch, state.step, MeetingPoint::TRAINED, state.sums, program.statistics());
    nn::copy(trained.statistics, program.statistics());
    store.refresh();
    steps.takeAverage();

    auto views = experiment.data.views(isLastEpoch);
    // An early stop may still be cancelled, if this epoch turns out to be the best one.
    bool mayBeLast = isLastEpoch || whyEndsEarly(epoch) != nullptr;
    auto all = kj::mv(trained);
    do {
      validation.run(all.part, all.parts, views, mayBeLast);
      all = ioThread->meet(
          epoch, state.step, MeetingPoint::VALIDATED, state.sums, nullptr, validation.cells());
    } while (all.again);
    savesNext = all.stopsNext;
    bool isBest = best.take(epoch, all.sums);
    auto endsEarly = isLastEpoch ? nullptr : whyEndsEarly(epoch);
    bool isLast = isLastEpoch || endsEarly != nullptr;
    if (isLast && !isLastEpoch) reports.ended();
    bool isOfAll = experiment.data.eachValidatesAll();
    reports.validated(epoch, isOfAll ? state.sums : all.sums, isLast, endsEarly);
    if (isBest && experiment.checkpoint.keepBest && parts.rank == 0) {
      bestWeights.keep(program);
      reports.best(best);
      sendBest();
    }
    return isLast;
  }

  // Validates the moving average of the weights on all records, and sends it. Does not change the
  // weights.
  void validateAverage() {
    KJ_IF_MAYBE(average, steps.average()) {
      auto values = average->values();
      auto parameters = kj::heapArray<float>(program.parameters());
      auto statistics = kj::heapArray<float>(program.statistics());
      nn::copy(values.slice(0, parameters.size()), program.parameters());
      nn::copy(values.slice(parameters.size(), values.size()), program.statistics());
      // Validates in as many parts as there are workers, so that `runner evaluate` adds the losses
      // in the same order.
      uint workers = experiment.data.eachValidatesAll() ? 1 : experiment.cluster.workers;
      nn::BatchResult sums;
      for (uint part = 0; part < workers; part++) {
        validation.run(part, workers, experiment.data.views(true), false);
        sums.add(state.sums);
      }
      nn::copy(parameters, program.parameters());
      nn::copy(statistics, program.statistics());
      reports.averaged(state.epoch, sums);
      sendWeights(Part::AVERAGED, state.epoch, accuracyOf(sums), values);
    }
  }

  void sendBest() { sendWeights(Part::BEST, best.epoch, best.accuracy, bestWeights.flat()); }

  // Sends weights, which the coordinator writes to a separate file, and their epoch and accuracy.
  void sendWeights(Part part, uint epoch, double accuracy, kj::ArrayPtr<const float> values) {
    kj::Vector<Note> notes;
    notes.add(Note{"epoch"_kj, kj::str(epoch)});
    notes.add(Note{"validation_accuracy"_kj, kj::str(accuracy)});
    auto withLevel = withInstructionSet(resolved, ioThread->instructionSet());
    for (auto& note: notesOf(withLevel, experiment, facts)) notes.add(kj::mv(note));
    ioThread->send(state.step, part, weightsPart(facts.graph, digest, notes, values));
  }

  WorkerParts parts;
  const Experiment& experiment;
  const ModelFacts& facts;
  nn::Program& program;
  Batches& batches;
  rpc::KvStore& store;
  LiveProgress& progress;
  kj::Own<IoThread>& ioThread;
  const kj::StringPtr digest;                       // of the experiment
  const kj::StringPtr resolved;                     // its text
  const kj::Maybe<kj::Own<const MemberPlan>> plan;  // of the run whose members this run repeats
  const kj::Maybe<const OneThread&> oneThread;
  uint64_t firstStep = 0;      // of this process
  kj::Array<kj::byte>& saved;  // the saved state of this worker, if the run is resumed
  const bool enters;           // whether `saved` is the state of another worker
  kj::Maybe<kj::Own<const io::Division>> ownDivision;
  kj::Maybe<const io::Division&> division;  // null: the members have not changed
  uint64_t epochEnd = 0;                    // the first step after the present epoch
  uint64_t stretchEnd = 0;                  // at most `epochEnd`: see setEnd()
  TrainingState state;
  TrainingSteps steps;
  BestEpoch best;
  BestWeights bestWeights;  // empty at all workers but the first
  WorkerReports reports;
  Validation validation;
  Stopwatch epochTime;          // since the epoch began
  bool savesNext = false;       // whether to save before the next step
  kj::Maybe<uint64_t> savedAt;  // the step at which the job was saved last
  uint64_t saved_bytes = 0;     // of this worker's part then
};

}  // namespace

void runWorker(const LoadedExperiment& loaded, const RoleOptions& options) {
  JoiningWorker joining(loaded, options);
  kj::Own<Worker> worker;
  auto run = [&]() {
    worker = kj::heap<Worker>(joining, loaded, options);
    worker->run();
  };
  KJ_IF_MAYBE(failure, kj::runCatchingExceptions(run)) {
    // The coordinator and the launcher may still reach a server that this worker cannot reach.
    if (!options.launched || rpc::isUnreachable(*failure)) {
      // The user who started this role learns nothing from a coordinator that was not told.
      kj::String reason;
      auto tell = [&]() { reason = joining.ioThread->tellFailure(*failure); };
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
