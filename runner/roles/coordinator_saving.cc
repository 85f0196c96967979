// runner/roles/coordinator_saving.cc: when a Job is saved, and how it reports that.
#include <capnp/message.h>
#include <kj/debug.h>

#include "runner/roles/coordinator.h"
#include "runner/roles/lost_role.h"
#include "runner/system/reason.h"

namespace runner {

kj::Promise<void> Job::saveRegularly() {
  double pause_s = experiment.checkpoint.every_s;
  // A run that repeats the members of another one stops for their joins.
  if (pause_s == 0 || plan != nullptr) return kj::NEVER_DONE;
  return timer.afterDelay(int64_t(pause_s * 1e9) * kj::NANOSECONDS)
      .then([this]() { return askToSave(); })
      .then([this](bool) { return saveRegularly(); });
}

void Job::saveNow() {
  tasks->add(askToSave().then([this](bool willStop) {
    if (willStop) return;
    tellLauncher([&](Event::Builder event) { event.setNotSaved(); });
  }));
}

kj::Promise<bool> Job::askToSave() {
  if (saver.isBusy()) return true;
  uint64_t furthest = 0;
  kj::Vector<Member::Client> workers;
  for (auto& seat: seats) {
    if (!seat.isWorkingMember()) continue;
    if (!seat.joined || over || finished > 0) return false;
    furthest = kj::max(furthest, seat.step);
    workers.add(KJ_ASSERT_NONNULL(seat.member));
  }
  return saver.ask(workers.releaseAsArray(), furthest)
      .then([this]() {
        bool isLastEpoch = epochsTrained + 1 >= facts.epochs(experiment);
        return saver.isBusy() || (saver.isForNextEpoch() && !isLastEpoch);
      })
      .catch_([](kj::Exception&& e) {
        unlessLost(kj::mv(e));
        return false;
      });
}

// A run can continue with another number of workers only from the end of an epoch.
bool Job::isEndToBeSaved() {
  double pause_s = experiment.checkpoint.every_s;
  bool isDue = pause_s > 0 && plan == nullptr &&
               timer.now() - endSaved >= int64_t(pause_s * 1e9) * kj::NANOSECONDS;
  return saver.takeNextEpoch() || isDue;
}

kj::Promise<void> Job::save(uint epoch, uint64_t step) {
  // A lost worker may have pushed the step that the others are about to begin. Its push waits in an
  // open round, which is not part of a checkpoint.
  if (!experiment.changesAtEpochEnds() && members.havePushed(step)) {
    saver.giveUp(step);
    endMeeting();
    return kj::READY_NOW;
  }
  kj::Vector<Member::Client> shards;
  kj::Vector<uint> ranks;
  for (auto& seat: seats) {
    if (seat.isWorkingMember()) ranks.add(seat.index);
    if (seat.role != shardHolder() || !experiment.kvstore.exchanges()) continue;
    shards.add(KJ_ASSERT_NONNULL(seat.member));
  }
  auto level = instructions.level().orDefault(nullptr);
  bool endsEpoch = step == epochBegin;
  if (endsEpoch) endSaved = timer.now();
  SavedPoint point{kj::str(loaded.digest), kj::str(level), epoch, step, run_s(), log.events_bytes(),
      log.events_crc32(), log.extents(), endsEpoch};
  return saver.gather(kj::mv(point), ranks.releaseAsArray(), shards.releaseAsArray())
      .then([this, step]() { return admitWaiting(step); })
      .then([this]() { endMeeting(); }, unlessLost);
}

void Job::reportSaved(
    const SavedPoint& point, kj::Maybe<const JobSaver::Saved&> saved, kj::StringPtr reason) {
  if (over) return;
  KJ_IF_MAYBE(s, saved) {
    record([&](Event::Builder event) {
      auto report = event.initSaved();
      report.setEpoch(point.epoch);
      report.setStep(point.step);
      report.setBytes(s->bytes);
      report.setSavedS(s->seconds);
      report.setStoodS(s->stood_seconds);
    });
  } else {
    reportUnsaved(point.epoch, point.step, reason);
  }
}

void Job::reportUnsaved(uint epoch, uint64_t step, kj::StringPtr reason) {
  // The training is sound, and the next attempt may succeed.
  if (over || !isInPlace()) return;
  record([&](Event::Builder event) {
    auto report = event.initUnsaved();
    report.setEpoch(epoch);
    report.setStep(step);
    report.setReason(reason);
  });
}

void Job::reportUnsavedWeights(kj::StringPtr reason) {
  auto& first = seatOf(Role::WORKER, 0);
  reportUnsaved(first.epoch, first.step, reason);
}

void Job::take(Seat& seat, Session::SavePartParams::Reader piece) {
  auto part = piece.getPart();
  auto require = [&](bool isExpected) {
    KJ_REQUIRE(isExpected && seat.role == Role::WORKER && seat.index == 0,
        "the coordinator has not asked this role for these weights");
  };
  auto take = [&]() {
    if (part == Part::BEST) {
      require(experiment.checkpoint.keepBest);
      best.take(piece);
    } else if (part == Part::AVERAGED) {
      require(experiment.train.average != nullptr);
      averaged.take(piece);
    } else {
      saver.take({part, piece.getIndex()}, piece);
    }
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(take)) {
    fail(kj::str("cannot take a part of a checkpoint from ", nameOf(seat), ": ", reasonOf(*e)));
  }
  serveNewcomers();
}

double Job::run_s() const {
  double before_s = 0;
  KJ_IF_MAYBE(checkpoint, from) before_s = checkpoint->point.run_s;
  return before_s + (timer.now() - begin) / kj::NANOSECONDS * 1e-9;
}

}  // namespace runner
