#include "runner/sweep_launch.h"

#include <capnp/message.h>
#include <kj/debug.h>
#include <unistd.h>

#include "runner/files.h"
#include "runner/log_lines.h"
#include "runner/model_facts.h"
#include "runner/reason.h"
#include "runner/role_options.h"
#include "runner/run_log.h"
#include "runner/run_tables.h"

namespace runner {

namespace {

constexpr uint64_t EVENTS_BYTES_MAX = 1ull << 34;

uint epochOf(Event::Reader event) {
  switch (event.which()) {
    case Event::SPEED:
      return event.getSpeed().getEpoch();
    case Event::TRAINED:
      return event.getTrained().getEpoch();
    case Event::VALIDATED:
      return event.getValidated().getEpoch();
    default:
      return 0;
  }
}

// Ends the record of a run whose roles are gone with the event `stopped`. What they did after the
// epoch at which that was decided depends on how fast they were told, and is left out.
void recordStop(const RunFolder& folder, uint epoch, kj::StringPtr reason) {
  auto text = readWhole(folder.events(), EVENTS_BYTES_MAX);
  kj::Vector<kj::String> lines;
  double time_s = 0;
  for (kj::StringPtr rest = text;;) {
    size_t end;
    KJ_IF_MAYBE(length, rest.findFirst('\n')) {
      end = *length;
    } else {
      break;
    }
    auto line = kj::heapString(rest.slice(0, end));
    rest = rest.slice(end + 1);
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    parseEvent(line, event);
    if (epochOf(event) > epoch) continue;
    time_s = event.getTimeS();
    lines.add(kj::mv(line));
  }
  capnp::MallocMessageBuilder message;
  auto event = message.initRoot<Event>();
  event.setTimeS(time_s);
  auto stopped = event.initStopped();
  stopped.setEpoch(epoch);
  stopped.setReason(reason);
  lines.add(formatEvent(event));
  writeWhole(folder.events(), kj::str(kj::strArray(lines, "\n"), "\n"));
}

}  // namespace

// A run of several: lines of the sweep's board.
class SweepLaunch::View final: public RunView {
public:
  View(SweepLaunch& sweep, Running& running, uint epochs, uint64_t steps)
      : RunView(epochs, steps), sweep(sweep), running(running) {}

  void show(Event::Reader event) override;
  void say(kj::StringPtr line) override;
  void end() override {}

  kj::String text = kj::str("starting");

private:
  SweepLaunch& sweep;
  Running& running;
};

struct SweepLaunch::Running {
  Running(SweepLaunch& sweep, size_t index, const ModelFacts& facts)
      : sweep(sweep),
        index(index),
        held(sweep.folderOf(index)),
        view(sweep, *this, facts.epochs(sweep.experimentOf(index)),
            facts.steps(sweep.experimentOf(index))) {
    sweep.running.add(this);
  }
  ~Running() noexcept(false) {
    kj::Vector<Running*> others;
    for (auto other: sweep.running) {
      if (other != this) others.add(other);
    }
    sweep.running = kj::mv(others);
  }

  SweepLaunch& sweep;
  const size_t index;
  HeldRunFolder held;
  View view;
  uint lastValidated = 0;
  // Why it is given up, once it is.
  struct Stop {
    uint epoch;
    kj::String reason;
  };
  kj::Maybe<Stop> stop;
  kj::PromiseFulfillerPair<void> givenUp = kj::newPromiseAndFulfiller<void>();
};

void SweepLaunch::View::show(Event::Reader event) {
  KJ_IF_MAYBE(progress, note(event)) {
    text = kj::mv(*progress);
    sweep.redraw();
  }
  if (event.isBadRecord()) {
    say(kj::str("warning: ", roleName(event.getRole(), event.getIndex()), ": ",
        event.getBadRecord().getReason()));
  }
  if (event.isValidated()) {
    auto validated = event.getValidated();
    sweep.validated(running, validated.getEpoch(), validated.getAccuracy(), validated.getLast());
  }
}

void SweepLaunch::View::say(kj::StringPtr line) {
  sweep.say(kj::str(sweep.nameOf(running.index), ": ", line));
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

SweepLaunch::SweepLaunch(const LoadedRuns& all, kj::StringPtr runs, kj::AsyncIoContext& io)
    : all(all),
      runs(runs),
      io(io),
      progress(STDERR_FILENO),
      records(kj::heapArray<RunRecord>(all.runs.size())),
      began(io.provider->getTimer().now()) {
  auto& sweep = KJ_ASSERT_NONNULL(all.sweep);
  KJ_IF_MAYBE(config, sweep.stop) asha.emplace(*config);
}

SweepLaunch::~SweepLaunch() noexcept(false) = default;

const Experiment& SweepLaunch::experimentOf(size_t index) const {
  return KJ_ASSERT_NONNULL(all.runs[index].loaded.experiment);
}

RunFolder SweepLaunch::folderOf(size_t index) const {
  return runFolder(runs, experimentOf(index).name, all.runs[index].name);
}

kj::String SweepLaunch::nameOf(size_t index) const {
  auto& run = all.runs[index];
  return kj::str(
      "run ", index + 1, "/", all.runs.size(), " ", runner::nameOf(run.settings, all.shortKeys));
}

kj::Maybe<RunRecord> SweepLaunch::doneBefore(size_t index) const {
  auto folder = folderOf(index);
  if (::access(folder.events().cStr(), R_OK) != 0) return nullptr;
  kj::Maybe<RunRecord> result;
  // What cannot be read is run again.
  auto wrong = kj::runCatchingExceptions([&]() { result = readRunRecord(folder.path); });
  if (wrong != nullptr) return nullptr;
  auto& record = KJ_ASSERT_NONNULL(result);
  if (record.digest != all.runs[index].loaded.digest) return nullptr;
  bool done = record.state == RunRecord::FINISHED ||
              (record.state == RunRecord::STOPPED && asha != nullptr);
  if (!done) return nullptr;
  return kj::mv(record);
}

void SweepLaunch::noteRungs(const RunRecord& record) {
  KJ_IF_MAYBE(a, asha) {
    for (auto& epoch: record.epochRecords) {
      KJ_IF_MAYBE(accuracy, epoch.validationAccuracy) a->keeps(epoch.epoch, *accuracy);
    }
  }
}

kj::Promise<kj::Array<RunRecord>> SweepLaunch::run() {
  uint skipped = 0;
  for (size_t index: kj::indices(all.runs)) {
    KJ_IF_MAYBE(record, doneBefore(index)) {
      say(kj::str(nameOf(index), ": skipped, it ",
          record->state == RunRecord::STOPPED ? "was stopped" : "has finished", " before"));
      noteRungs(*record);
      records[index] = kj::mv(*record);
      skipped++;
    } else {
      waiting.add(index);
    }
  }
  kj::Vector<kj::Promise<void>> lanes;
  uint parallel = kj::min(parallelRuns(all, thisMachine().cores), waiting.size());
  say(kj::str("sweep ", experimentOf(0).name, ": ", counted(waiting.size(), "run"), " to do, ",
      skipped, " done before, ", parallel, " side by side"));
  for (uint i = 0; i < parallel; i++) lanes.add(takeNext());
  return kj::joinPromises(lanes.releaseAsArray()).then([this]() {
    progress.clear();
    return kj::mv(records);
  });
}

kj::Promise<void> SweepLaunch::takeNext() {
  if (started == waiting.size()) return kj::READY_NOW;
  size_t index = waiting[started++];
  return kj::evalNow([&]() { return start(index); })
      .then([](RunRecord&& record) { return kj::mv(record); },
          [this, index](kj::Exception&& e) {
            RunRecord record;
            record.folder = kj::str(folderOf(index).path);
            record.state = RunRecord::FAILED;
            record.reason = reasonOf(e);
            return record;
          })
      .then([this, index](RunRecord&& record) {
        finish(index, kj::mv(record));
        return takeNext();
      });
}

kj::Promise<RunRecord> SweepLaunch::start(size_t index) {
  auto& loaded = all.runs[index].loaded;
  auto running = kj::heap<Running>(*this, index, ModelFacts(experimentOf(index)));
  auto& held = running->held;
  // Another runner may have done it since.
  KJ_IF_MAYBE(record, doneBefore(index)) return kj::mv(*record);
  held.empty();
  writeWhole(held.folder.experiment(), loaded.resolved);
  auto givenUp = running->givenUp.promise.then([]() { return Outcome{}; });
  return launch(loaded, held.folder, running->view, io)
      .exclusiveJoin(kj::mv(givenUp))
      .then([&running = *running](Outcome&& outcome) { return recordOf(running, outcome); })
      .attach(kj::mv(running));
}

RunRecord SweepLaunch::recordOf(const Running& running, Outcome& outcome) {
  auto& folder = running.held.folder;
  KJ_IF_MAYBE(reason, outcome.failure) {
    RunRecord record;
    // A run that failed early has no events.
    auto ignored = kj::runCatchingExceptions([&]() { record = readRunRecord(folder.path); });
    record.folder = kj::str(folder.path);
    record.state = RunRecord::FAILED;
    record.reason = kj::mv(*reason);
    return record;
  }
  KJ_IF_MAYBE(stop, running.stop) {
    if (outcome.weightsSha256 == nullptr) recordStop(folder, stop->epoch, stop->reason);
  }
  return readRunRecord(folder.path);
}

void SweepLaunch::finish(size_t index, RunRecord record) {
  ended++;
  if (record.state == RunRecord::FAILED) failed++;
  auto text = kj::str(stateWord(record.state), record.reason.size() > 0 ? ": " : "", record.reason);
  if (record.state == RunRecord::FINISHED && record.epochRecords.size() > 0) {
    KJ_IF_MAYBE(accuracy, record.epochRecords.back().validationAccuracy) {
      text =
          kj::str("accuracy ", fixedPoint(*accuracy, 4), " in ", fixedPoint(record.run_s, 1), " s");
    }
  }
  say(kj::str(nameOf(index), ": ", text));
  records[index] = kj::mv(record);
  redraw();
}

void SweepLaunch::validated(Running& running, uint epoch, double accuracy, bool last) {
  // Every worker tells the common figure.
  if (epoch <= running.lastValidated) return;
  running.lastValidated = epoch;
  KJ_IF_MAYBE(a, asha) {
    if (a->keeps(epoch, accuracy) || last) return;
    running.stop =
        Running::Stop{epoch, kj::str("at epoch ", epoch, ": validation accuracy ",
                                 fixedPoint(accuracy, 4), " is not among the best so far")};
    running.givenUp.fulfiller->fulfill();
  }
}

void SweepLaunch::redraw() {
  kj::Vector<kj::String> lines;
  double done = ended;
  for (auto each: running) {
    lines.add(kj::str(nameOf(each->index), ": ", each->view.text));
    done += each->view.partDone();
  }
  kj::Maybe<double> eta_s;
  double elapsed_s = (io.provider->getTimer().now() - began) / kj::MILLISECONDS / 1e3;
  if (done > 0) eta_s = elapsed_s / done * (waiting.size() - done);
  uint before = all.runs.size() - waiting.size();
  lines.add(progressText(before + ended, all.runs.size(), failed, eta_s));
  progress.show(lines);
}

void SweepLaunch::say(kj::StringPtr line) {
  progress.clear();
  writeQuietly(STDERR_FILENO, kj::str(line, "\n"));
}

}  // namespace runner
