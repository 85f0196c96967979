#include "runner/sweep/sweep_launch.h"

#include <kj/debug.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/checkpoints/weights.h"
#include "runner/experiment/model_facts.h"
#include "runner/launch/slurm_queue.h"
#include "runner/logs/run_ending.h"
#include "runner/logs/run_lock.h"
#include "runner/roles/role_options.h"
#include "runner/sweep/stopped_run.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/tables/run_tables.h"
#include "runner/text/numbers.h"

namespace runner {

// The view of one of several runs. Its lines go to the sweep's board.
class SweepLaunch::View final: public RunView {
public:
  View(SweepLaunch& sweep, Running& running, uint epochs, uint64_t steps)
      : RunView(epochs, steps), sweep(sweep), running(running) {}

  void show(Event::Reader event) override;
  void say(kj::StringPtr line) override;
  void showWait(kj::StringPtr text) override;
  void end() override {}

  kj::String text = kj::str("starting");

private:
  SweepLaunch& sweep;
  Running& running;
};

struct SweepLaunch::Running {
  Running(SweepLaunch& sweep, size_t index, RunLock lock, const ModelFacts& facts)
      : sweep(sweep),
        index(index),
        held(sweep.folders.folderOf(index), kj::mv(lock)),
        view(sweep, *this, facts.epochs(sweep.folders.experimentOf(index)),
            facts.steps(sweep.folders.experimentOf(index))),
        validatedEpochs(sweep.folders.experimentOf(index).cluster.workers) {
    sweep.running.add(this);
  }
  // The destructor runs when the roles of the run are gone.
  ~Running() noexcept(false) {
    KJ_IF_MAYBE(reason, sweep.interruption) {
      if (!hasEnded) recordInterruption(*reason);
    }
    kj::Vector<Running*> others;
    for (auto other: sweep.running) {
      if (other != this) others.add(other);
    }
    sweep.running = kj::mv(others);
  }

  void recordInterruption(kj::StringPtr reason) {
    auto& style = *sweep.folders.experimentOf(index).log.style;
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(
                       [&]() { recordEnding(held.folder, style, Ending::INTERRUPTED, reason); })) {
      view.say(kj::str("warning: the interruption is not recorded: ", reasonOf(*e)));
    }
  }

  SweepLaunch& sweep;
  const size_t index;
  HeldRunFolder held;
  bool hasEnded = false;
  View view;
  SaveHook saveHook;
  kj::Maybe<RunRecord> before;  // what an earlier call has left, if the run continues from there
  uint countedEpochs = 0;       // how many epochs the rungs have counted
  ValidatedEpochs validatedEpochs;
  kj::Maybe<Stop> stop;  // set when the run is stopped
  kj::PromiseFulfillerPair<void> givenUp = kj::newPromiseAndFulfiller<void>();
};

void SweepLaunch::View::show(Event::Reader event) {
  KJ_IF_MAYBE(progress, note(event)) {
    text = kj::mv(*progress);
    sweep.redraw();
  }
  KJ_IF_MAYBE(line, noticeOf(event)) say(*line);
  if (event.isContinued()) sweep.continued(running, event.getContinued());
  KJ_IF_MAYBE(epoch, running.validatedEpochs.take(event)) sweep.validated(running, *epoch);
}

void SweepLaunch::View::say(kj::StringPtr line) {
  sweep.say(kj::str(sweep.folders.nameOf(running.index), ": ", line));
}

void SweepLaunch::View::showWait(kj::StringPtr what) {
  text = kj::str(what.size() == 0 ? "starting"_kj : what);
  sweep.redraw();
}

uint parallelRuns(const LoadedRuns& all, uint cores) {
  KJ_IF_MAYBE(sweep, all.sweep) {
    KJ_IF_MAYBE(wanted, sweep->parallelRuns) return *wanted;
  }
  uint largest = 1;
  for (auto& run: all.runs) {
    auto& cluster = KJ_ASSERT_NONNULL(run.loaded.experiment).cluster;
    uint devices = cluster.devices.size();
    largest = kj::max(largest, cluster.workers * cluster.threadsPerWorker * devices);
  }
  return kj::max(1u, cores / largest);
}

SweepLaunch::SweepLaunch(
    const LoadedRuns& all, kj::StringPtr runs, kj::AsyncIoContext& io, LaunchOptions options)
    : all(all),
      folders(all, runs),
      io(io),
      options(options),
      progress(STDERR_FILENO),
      records(kj::heapArray<RunRecord>(all.runs.size())),
      began(io.provider->getTimer().now()) {
  auto& sweep = KJ_ASSERT_NONNULL(all.sweep);
  KJ_IF_MAYBE(config, sweep.stop) asha.emplace(*config);
}

SweepLaunch::~SweepLaunch() noexcept(false) = default;

kj::Maybe<RunRecord> SweepLaunch::skipped(size_t index) {
  auto done = folders.doneBefore(index);
  KJ_IF_MAYBE(record, done) {
    say(folders.skippedText(index, *record));
    noteRungs(*record);
  }
  return done;
}

void SweepLaunch::noteRungs(const RunRecord& record) {
  for (auto& epoch: record.epochRecords) noteRung(epoch);
}

void SweepLaunch::noteRung(const EpochRecord& epoch) {
  KJ_IF_MAYBE(a, asha) {
    KJ_IF_MAYBE(accuracy, epoch.validationAccuracy) a->keeps(epoch.epoch, *accuracy);
  }
}

kj::Promise<kj::Array<RunRecord>> SweepLaunch::run() {
  folders.writeOrder();
  return sort(0)
      .then([this]() {
        toDo = waiting.size();
        uint parallel = kj::min(parallelRuns(all, thisMachine().cores), toDo);
        auto inParallel = toDo == 0 ? kj::str() : kj::str(", ", parallel, " at a time");
        say(kj::str("sweep ", folders.experimentOf(0).name, ": ", counted(toDo, "run"), " to do, ",
            all.runs.size() - toDo, " done before", inParallel));
        return runWaiting(parallel);
      })
      .then([this]() {
        lookAgainAtFailed();
        progress.clear();
        return kj::mv(records);
      });
}

kj::Promise<void> SweepLaunch::sort(size_t index) {
  if (index == all.runs.size()) return kj::READY_NOW;
  kj::Maybe<RunRecord> known;
  // start() reports why the events of a run cannot be read.
  kj::runCatchingExceptions([&]() { known = skipped(index); });
  KJ_IF_MAYBE(record, known) {
    records[index] = kj::mv(*record);
  } else {
    waiting.add(index);
  }
  // The weights of a run may take long to read. Only the timer lets a signal be noticed before the
  // next run.
  return io.provider->getTimer().afterDelay(0 * kj::SECONDS).then([this, index]() {
    return sort(index + 1);
  });
}

kj::Promise<void> SweepLaunch::runWaiting(uint parallel) {
  kj::Vector<kj::Promise<void>> lanes;
  for (uint i = 0; i < parallel; i++) lanes.add(takeNext());
  return kj::joinPromises(lanes.releaseAsArray()).then([this, parallel]() -> kj::Promise<void> {
    auto looked = kj::mv(elsewhere);
    for (size_t index: looked) {
      if (isHeld(folders.folderOf(index))) {
        elsewhere.add(index);
      } else {
        waiting.add(index);
      }
    }
    if (elsewhere.size() < looked.size()) return runWaiting(parallel);
    for (size_t index: elsewhere) records[index] = folders.recordElsewhere(index);
    return kj::READY_NOW;
  });
}

void SweepLaunch::lookAgainAtFailed() {
  for (size_t index: kj::indices(records)) {
    if (records[index].state != RunRecord::FAILED) continue;
    kj::Maybe<RunRecord> known;
    // A run whose events cannot be read has failed for that reason.
    kj::runCatchingExceptions([&]() { known = folders.doneBefore(index); });
    KJ_IF_MAYBE(record, known) {
      say(kj::str(folders.nameOf(index), ": another process has run it again, and it finished"));
      records[index] = kj::mv(*record);
    } else if (isHeld(folders.folderOf(index))) {
      records[index] = folders.recordElsewhere(index);
    }
  }
}

kj::Promise<void> SweepLaunch::takeNext() {
  if (started == waiting.size()) return kj::READY_NOW;
  if (interruption != nullptr) return kj::NEVER_DONE;
  size_t index = waiting[started++];
  return kj::evalNow([&]() { return start(index); })
      .then([](RunRecord&& record) { return kj::mv(record); },
          [this, index](kj::Exception&& e) {
            RunRecord record;
            record.folder = kj::str(folders.folderOf(index).path);
            record.state = RunRecord::FAILED;
            record.reason = reasonOf(e);
            say(folders.endedText(index, record));
            return record;
          })
      .then([this, index](RunRecord&& record) {
        if (record.state == RunRecord::RUNNING) {
          elsewhere.add(index);
        } else {
          finish(index, kj::mv(record));
        }
        return takeNext();
      });
}

kj::Promise<RunRecord> SweepLaunch::start(size_t index) {
  auto& loaded = all.runs[index].loaded;
  KJ_IF_MAYBE(problem, all.runs[index].problem) configs::fail(*problem);
  auto free = lockOf(folders.folderOf(index));
  if (free == nullptr) {
    auto record = folders.recordElsewhere(index);
    say(folders.endedText(index, record));
    return kj::mv(record);
  }
  KJ_ASSERT_NONNULL(free).noteSweep();
  auto running = kj::heap<Running>(
      *this, index, kj::mv(KJ_ASSERT_NONNULL(free)), ModelFacts(folders.experimentOf(index)));
  // Another runner may have finished it since.
  KJ_IF_MAYBE(record, skipped(index)) return kj::mv(*record);
  KJ_IF_MAYBE(record, folders.endedBefore(index)) {
    KJ_IF_MAYBE(why, folders.whyNoWeights(index, *record)) {
      say(kj::str(folders.nameOf(index), ": had finished before, but is run again: ", *why));
    }
  } else KJ_IF_MAYBE(why, folders.damageOf(index)) {
    say(kj::str(folders.nameOf(index), ": ", *why));
  }
  auto& held = running->held;
  running->before = folders.prepare(held, index);
  forgetSlurmJob(held.folder);
  auto own = options;
  own.resumes = running->before != nullptr;
  own.saveHook = &running->saveHook;
  auto givenUp = running->givenUp.promise.then([]() { return Outcome{}; });
  return launch(loaded, held.folder, running->view, io, own)
      .exclusiveJoin(kj::mv(givenUp))
      .then([this, index, &running = *running](Outcome&& outcome) {
        running.hasEnded = true;
        auto record = recordOf(running, outcome);
        say(folders.endedText(index, record));
        return record;
      })
      .attach(kj::mv(running));
}

RunRecord SweepLaunch::recordOf(const Running& running, Outcome& outcome) {
  auto& folder = running.held.folder;
  // The decision to stop counts, however the run then ended, because it came first.
  KJ_IF_MAYBE(stop, running.stop) {
    recordStop(running.held, running.sweep.all.runs[running.index].loaded, *stop);
    return readRunRecord(folder.path);
  }
  KJ_IF_MAYBE(reason, outcome.failure) {
    return running.sweep.folders.failedRecord(running.index, kj::mv(*reason));
  }
  return readRunRecord(folder.path);
}

void SweepLaunch::finish(size_t index, RunRecord record) {
  ended++;
  if (record.state == RunRecord::FAILED) failed++;
  records[index] = kj::mv(record);
  redraw();
}

kj::Promise<void> SweepLaunch::save() {
  auto saved = KJ_MAP(each, running) {
    return each->saveHook.save();
  };
  return kj::joinPromises(kj::mv(saved));
}

void SweepLaunch::continued(Running& running, Event::Continued::Reader continued) {
  running.view.say(
      kj::str("continues after step ", continued.getStep(), ", in epoch ", continued.getEpoch()));
  KJ_IF_MAYBE(record, running.before) {
    for (auto& epoch: record->epochRecords) {
      if (epoch.epoch <= running.countedEpochs || epoch.epoch >= continued.getEpoch()) continue;
      noteRung(epoch);
      running.countedEpochs = epoch.epoch;
    }
  }
}

void SweepLaunch::validated(Running& running, const ValidatedEpoch& validated) {
  // This event came before the roles were taken down.
  if (running.stop != nullptr) return;
  uint epoch = validated.epoch;
  // A run that was lost and started again repeats epochs.
  if (epoch <= running.countedEpochs) return;
  running.countedEpochs = epoch;
  KJ_IF_MAYBE(a, asha) {
    if (a->keeps(epoch, validated.accuracy) || validated.isLast) return;
    running.stop = Stop{epoch, a->rule(),
        kj::str("at epoch ", epoch, ": validation accuracy ", figureText(validated.accuracy, 4),
            " is not among the best so far")};
    running.givenUp.fulfiller->fulfill();
  }
}

void SweepLaunch::redraw() {
  kj::Vector<kj::String> lines;
  double done = ended;
  for (auto each: running) {
    lines.add(kj::str(folders.nameOf(each->index), ": ", each->view.text));
    done += each->view.partDone();
  }
  kj::Maybe<double> eta_s;
  double elapsed_s = (io.provider->getTimer().now() - began) / kj::MILLISECONDS / 1e3;
  if (done > 0) eta_s = elapsed_s / done * (toDo - done);
  uint before = all.runs.size() - toDo;
  lines.add(progressText(before + ended, all.runs.size(), failed, eta_s));
  progress.show(lines);
}

void SweepLaunch::say(kj::StringPtr line) {
  progress.clear();
  runner::tell(line);
}

}  // namespace runner
