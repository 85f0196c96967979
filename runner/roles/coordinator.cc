#include "runner/roles/coordinator.h"

#include <capnp/message.h>
#include <errno.h>
#include <kj/debug.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "configs/language/warning.h"
#include "runner/checkpoints/weights.h"
#include "runner/logs/confusion_file.h"
#include "runner/logs/events.h"
#include "runner/logs/role_names.h"
#include "runner/roles/disk_room.h"
#include "runner/roles/disk_work.h"
#include "runner/roles/lost_role.h"
#include "runner/roles/member_plan.h"
#include "runner/system/files.h"
#include "runner/system/machine.h"
#include "runner/system/reason.h"
#include "runner/system/version.h"
#include "runner/text/numbers.h"
#include "runner/weights/weights_notes.h"

namespace runner {

namespace {

// Roles on one machine take much less time to join.
constexpr auto TELL_MISSING = 5 * kj::SECONDS;

// Returns the instructions with which the run has computed until the checkpoint. Empty if it
// begins, or if they are not known.
kj::StringPtr instructionsUntil(const kj::Maybe<const FoundCheckpoint&>& from) {
  KJ_IF_MAYBE(checkpoint, from) return checkpoint->point.instructionSet;
  return nullptr;
}

// Returns how many of `images` are right. 0 if `accuracy` is not a valid share.
uint64_t correctOf(double accuracy, uint64_t images) {
  return accuracy >= 0 && accuracy <= 1 ? uint64_t(round(accuracy * images)) : 0;
}

}  // namespace

Job::Job(const LoadedExperiment& loaded, const ModelFacts& facts, const RunFolder& folder,
    RunLog& log, kj::Timer& timer, const kj::Clock& clock, kj::Maybe<const FoundCheckpoint&> from,
    bool here, kj::Maybe<const OneThread&> oneThread)
    : loaded(loaded),
      experiment(KJ_ASSERT_NONNULL(loaded.experiment)),
      facts(facts),
      graph(facts.graph),
      folder(folder),
      log(log),
      timer(timer),
      clock(clock),
      begin(timer.now()),
      running(timer),
      members(experiment.cluster.workers, experiment.cluster.seats()),
      changing(kj::Promise<void>(kj::READY_NOW).fork()),
      speed(begin),
      instructions(experiment.cluster.instructionSet, highestLevelOf(experiment),
          here ? 0 : experiment.cluster.workers, instructionsUntil(from)),
      meeting(experiment.cluster.seats()),
      from(from),
      oneThread(oneThread),
      saver(
          experiment, loaded.digest, facts.graph, folder, timer,
          [this](const SavedPoint& point, kj::Maybe<const JobSaver::Saved&> saved,
              kj::StringPtr reason) { reportSaved(point, saved, reason); },
          oneThread),
      best(
          Part::BEST, folder.best(), neededRoom(experiment, facts).weights_bytes + NOTES_BYTES_MAX,
          [this](kj::StringPtr reason) { reportUnsavedWeights(reason); }, oneThread),
      averaged(
          Part::AVERAGED, folder.averaged(),
          neededRoom(experiment, facts).weights_bytes + NOTES_BYTES_MAX,
          [this](kj::StringPtr reason) { reportUnsavedWeights(reason); }, oneThread),
      tasks(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))) {
  auto& cluster = experiment.cluster;
  KJ_IF_MAYBE(checkpoint, from) {
    epochsChecked = epochsStepped = epochsTrained = checkpoint->point.epoch - 1;
    if (checkpoint->point.endsEpoch) epochBegin = checkpoint->point.step;
    eachEventButSpeed(folder, [this, &folder, &cluster](Event::Reader event) {
      if (event.isBadRecord()) badRecords.insert(kj::str(event.getBadRecord().getReason()));
      if (event.isMembership()) {
        requireSeat(folder, event.getIndex(), cluster.seats());
        members.add(changeOf(event.getIndex(), event.getMembership()));
      }
      // Earlier changes do not concern the present workers.
      if (event.isResized()) {
        members = JobMembers(experiment.cluster.workers, experiment.cluster.seats());
      }
    });
    if (members.changes().size() > 0 && !cluster.onLoss->continues) {
      configs::fail("workers have left or joined the run in ", folder.path,
          ", so it can continue only with cluster.on_loss = \"continue\"");
    }
  }
  auto builder = kj::heapArrayBuilder<Seat>(cluster.servers + cluster.seats());
  for (uint i = 0; i < cluster.servers; i++) builder.add(Seat{Role::SERVER, i});
  for (uint i = 0; i < cluster.seats(); i++) builder.add(Seat{Role::WORKER, i, members.has(i)});
  seats = builder.finish();
  for (auto& seat: seats) {
    expected += seat.isMember ? 1 : 0;
    if (!seat.isMember) meeting.leave(seat.index);
  }
}

void Job::showAddress(kj::StringPtr address) {
  if (over) return;
  tellLauncher([&](Event::Builder event) {
    auto listening = event.initListening();
    listening.setAddress(address);
    if (experiment.cluster.onLoss->continues) {
      auto ranks = listening.initWorkers(members.count());
      uint i = 0;
      for (auto& seat: seats) {
        if (seat.isWorkingMember()) ranks.set(i++, seat.index);
      }
    }
  });
}

kj::Promise<void> Job::run(bool launched) {
  KJ_IF_MAYBE(checkpoint, from) {
    reportContinued(checkpoint->point);
  } else {
    reportStarted();
    reportPlacement();
  }
  // Unfinished files of a killed process take room that the run may need. Otherwise they would stay
  // until the run writes these files at its end.
  for (auto& path: {folder.weights(), folder.best(), folder.averaged()}) removeAbandoned(path);
  checkFolder(epochsChecked);

  // The first of these promises that ends also ends the job. Only `ending` can end it successfully.
  return kj::mv(ending.promise)
      .exclusiveJoin(launched ? kj::Promise<void>(kj::NEVER_DONE) : watchStart())
      .exclusiveJoin(
          tellMissing(kj::min(TELL_MISSING, experiment.cluster.startTimeout_s * kj::SECONDS / 2)))
      .exclusiveJoin(watchRoles())
      .exclusiveJoin(saveRegularly())
      .exclusiveJoin(showProgress(0));
}

void Job::recordInstructionSet() {
  tasks->add(instructionSet().then([this](kj::StringPtr level) -> kj::Promise<void> {
    auto resolved = withInstructionSet(loaded.resolved, level);
    if (resolved == loaded.resolved || !isInPlace()) return kj::READY_NOW;
    return writeBeside(
        [this, text = kj::mv(resolved)]() { writeWhole(folder.experiment(), text); });
  }));
}

void Job::reportContinued(const SavedPoint& point) {
  recordOrThrow([&](Event::Builder event) {
    event.initContinued().setEpoch(point.epoch);
    event.getContinued().setStep(point.step);
  });
}

void Job::reportStarted() {
  recordOrThrow([&](Event::Builder event) {
    auto started = event.initStarted();
    started.setName(experiment.name);
    started.setDigest(loaded.digest);
    KJ_IF_MAYBE(level, instructions.level()) started.setInstructionSet(*level);
    started.setParameters(graph.parameters);
    started.setVersion(VERSION);
    auto machine = thisMachine();
    started.setCpu(machine.cpu);
    started.setCores(machine.cores);
    started.setMemoryBytes(machine.memory_bytes);
    started.setWorkers(experiment.cluster.workers);
    started.setServers(experiment.cluster.servers);
    started.setEpochs(facts.epochs(experiment));
    started.setSteps(facts.steps(experiment));
    started.setGlobalBatchSize(experiment.globalBatchSize());
    auto leftOut = started.initLeftOut(facts.leftOut.size());
    for (auto i: kj::indices(facts.leftOut)) leftOut.set(i, facts.leftOut[i]);
  });
}

void Job::reportPlacement() {
  if (experiment.cluster.servers == 0) return;
  auto placement = placementOf(experiment, graph);
  for (uint key: kj::indices(graph.keys)) {
    for (uint server: kj::indices(placement.shards)) {
      uint64_t floats = 0;
      for (auto id: placement.shards[server]) {
        auto& slice = placement.slices[id];
        if (slice.key == key) floats += slice.size;
      }
      if (floats == 0) continue;
      recordOrThrow([&](Event::Builder event) {
        auto placed = event.initPlaced();
        placed.setKey(graph.keys[key].name);
        placed.setServer(server);
        placed.setBytes(floats * sizeof(float));
      });
    }
  }
}

Job::Seat& Job::seatOf(Role role, uint index) {
  for (auto& seat: seats) {
    if (seat.role == role && seat.index == index) return seat;
  }
  configs::fail(
      "there is no ", roleName(role, index), " in this job: it has ", experiment.cluster.roles());
}

kj::String Job::nameOf(const Seat& seat) const {
  return onHost(roleName(seat.role, seat.index), seat.host);
}

void Job::report(Seat& seat, Event::Reader event, bool lostPeer) {
  if (event.isFailed()) {
    lostRole = lostRole || (!over && lostPeer);
    return fail(kj::str(nameOf(seat), ": ", event.getFailed().getReason()));
  }
  KJ_REQUIRE(!isLast(event), "only the coordinator and the launcher end a run", nameOf(seat));
  if (event.isSpeed() && event.getSpeed().getStep() >= seat.step) {
    // The event is newer than the latest heartbeat. Epoch, step and figures must be of one moment.
    auto speed = event.getSpeed();
    uint64_t images = uint64_t(speed.getBatch()) * experiment.data.batchSize;
    seat.epoch = speed.getEpoch();
    seat.step = speed.getStep();
    seat.sums = {speed.getLoss() * images, correctOf(speed.getAccuracy(), images), images};
  }
  if (event.isTrained()) {
    auto trained = event.getTrained();
    uint64_t images = trained.getImages();
    seat.epoch = seat.trainedEpoch = trained.getEpoch();
    seat.step = trained.getStep();
    seat.sums = {trained.getLoss() * images, correctOf(trained.getAccuracy(), images), images};
  }
  if (event.isBadRecord()) {
    // Every epoch reads the record again. One event is enough.
    auto reason = event.getBadRecord().getReason();
    if (badRecords.contains(reason)) return;
    badRecords.insert(kj::str(reason));
  }
  capnp::MallocMessageBuilder message;
  message.setRoot(event);
  auto copy = message.getRoot<Event>();
  stamp(copy);
  copy.setRole(seat.role);
  copy.setIndex(seat.index);
  append(copy);
  // The check runs once per epoch, when the first worker ends it.
  if (event.isTrained() && event.getTrained().getEpoch() > epochsChecked) {
    epochsChecked = event.getTrained().getEpoch();
    checkFolder(epochsChecked);
  }
}

kj::Promise<void> Job::meet(
    Seat& seat, uint epoch, uint64_t step, MeetingPoint point, Contribution contribution) {
  KJ_REQUIRE(seat.role == Role::WORKER, "only workers meet");
  requireStarted(seat);
  KJ_REQUIRE(
      point != MeetingPoint::TRAINED || contribution.statistics.size() == graph.statisticsSize,
      "statistics of another network", contribution.statistics.size(), graph.statisticsSize);
  auto over = meeting.join(seat.index, epoch, step, point, kj::mv(contribution));
  seat.step = kj::max(seat.step, step);
  if (meeting.isFull()) closeMeeting();
  return over;
}

void Job::closeMeeting() {
  auto point = meeting.point();
  uint epoch = meeting.presentEpoch();
  uint64_t step = meeting.presentStep();
  if (point == MeetingPoint::VALIDATED) return endMeeting();
  // All members have contributed. A worker that is lost from now on is lost in the next epoch.
  if (point == MeetingPoint::TRAINED) epochsTrained = epoch;
  // When no change of the members is pending, the servers and the events agree that every worker in
  // the meeting is a member.
  tasks->add(whenSettled([this, point, epoch, step]() -> kj::Promise<void> {
    switch (point) {
      case MeetingPoint::SAVED:
        return save(epoch, step);
      case MeetingPoint::STEPPED:
        if (endOf(epoch) > step) {
          meeting.repeat();
        } else {
          epochsStepped = epoch;
        }
        break;
      case MeetingPoint::TRAINED:
        // All pushes are answered, and the workers push nothing before the meeting ends.
        if (experiment.cluster.servers > 0) {
          return countPushes(epoch).then([this]() { endMeeting(); });
        }
        break;
      case MeetingPoint::VALIDATED:
        break;
    }
    endMeeting();
    return kj::READY_NOW;
  }));
}

void Job::endMeeting() {
  bool again = meeting.point() == MeetingPoint::VALIDATED && meeting.repeats();
  bool areTrained = meeting.point() == MeetingPoint::TRAINED;
  speed.setValidating(timer.now(), (areTrained || again) && facts.validationRecords > 0);
  tellProgress();
  bool isOver = meeting.point() == MeetingPoint::VALIDATED && !again;
  if (isOver) {
    epochBegin = meeting.presentStep();
    saver.endEpoch();
  }
  if (isOver) writeConfusion();
  if (isOver && isEndToBeSaved()) meeting.stopNext();
  meeting.end();
}

void Job::writeConfusion() {
  auto cells = meeting.confusion();
  if (cells.size() == 0) return;
  tasks->add(kj::evalNow([&]() -> kj::Promise<void> {
    if (!isInPlace()) return kj::READY_NOW;
    return writeBeside([this, text = confusionText(cells), number = ++confusions]() {
      // Another thread may still write that of an earlier validation, or begin to later.
      auto newest = newestConfusion.lockExclusive();
      if (*newest > number) return;
      *newest = number;
      writeWhole(folder.confusion(), text);
      if (graph.classNames.size() > 0) writeWhole(folder.classes(), classesText(graph.classNames));
    });
  }));
}

kj::Promise<void> Job::writeBeside(kj::Function<void()> write) {
  ++writing;
  return besideLoop(oneThread, kj::mv(write)).then([this]() {
    --writing;
    return endIfFinished();
  });
}

void Job::warnOfRemovedLogs() {
  kj::Vector<kj::String> removed;
  for (auto& path: log.removedLogs()) {
    if (!removedLogs.contains(path.asPtr())) removed.add(kj::mv(path));
  }
  if (removed.empty()) return;
  auto others = removed.size() == 1
                    ? kj::str(" was")
                    : kj::str(" and ", counted(removed.size() - 1, "other log"), " were");
  configs::warn(kj::str(removed[0], others, " removed or renamed during the run. What the run has ",
      "logged since then is only in ", folder.events(), ", from which tables are made"));
  for (auto& path: removed) removedLogs.insert(kj::mv(path));
}

void Job::checkFolder(uint epochsDone) {
  if (!isInPlace()) return;
  warnOfRemovedLogs();
  if (::access(folder.path.cStr(), W_OK | X_OK) != 0) {
    return fail(kj::str("cannot write to the folder of the run, ", folder.path, ": ",
        strerror(errno), "; make it writable, or ", otherRuns()));
  }
  auto needed = neededRoom(experiment, facts);
  if (epochsDone == facts.epochs(experiment)) needed.logs_bytes = 0;
  // The exception must not reach the worker whose report has led here.
  auto check = [&]() {
    KJ_IF_MAYBE(why, whyNoRoom(folder, needed)) fail(kj::mv(*why));
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(check)) fail(reasonOf(*e));
}

bool Job::isInPlace() {
  if (log.isInPlace()) return true;
  fail(kj::str("the folder of the run, ", folder.path, ", or its events.jsonl, was removed or ",
      "renamed during the run; start the run again, and leave its folder in place"));
  return false;
}

kj::Promise<void> Job::countPushes(uint epoch) {
  kj::Vector<kj::Promise<void>> counts;
  for (auto& seat: seats) {
    if (seat.role != Role::SERVER) continue;
    auto counted = KJ_ASSERT_NONNULL(seat.member).countRequest().send();
    counts.add(counted.then([this, &seat, epoch](capnp::Response<Member::CountResults>&& result) {
      capnp::MallocMessageBuilder message;
      auto event = message.initRoot<Event>();
      event.initCounted().setEpoch(epoch);
      event.getCounted().setPushes(result.getPushes());
      report(seat, event);
    }));
  }
  return neverIfLost(kj::joinPromises(counts.releaseAsArray()));
}

void Job::finish(Seat& seat, kj::Array<float> parameters, kj::ArrayPtr<const float> statistics) {
  KJ_REQUIRE(
      seat.role == Role::WORKER && !seat.finished, "only a worker can finish, and only once");
  requireStarted(seat);
  seat.finished = true;
  finished++;
  tasks->add(kj::evalNow([&]() -> kj::Promise<void> {
    // The weights of all workers are the same.
    bool areFirst = !hasWeights && (seat.index == 0 || experiment.cluster.onLoss->continues);
    if (!areFirst) return endIfFinished();
    KJ_REQUIRE(parameters.size() == graph.parameters && statistics.size() == graph.statisticsSize,
        "weights of another network", parameters.size(), statistics.size());
    if (!isInPlace()) return kj::READY_NOW;
    hasWeights = true;
    return writeBeside(
        [this, ours = kj::mv(parameters), itsStatistics = kj::heapArray(statistics)]() {
          auto level = instructions.level().orDefault(nullptr);
          auto resolved = level == nullptr ? kj::str(loaded.resolved)
                                           : withInstructionSet(loaded.resolved, level);
          weightsSha256 = writeWeights(folder.weights(), graph, loaded.digest, ours, itsStatistics,
              notesOf(resolved, experiment, facts));
        });
  }));
}

kj::Promise<void> Job::endIfFinished() {
  // A change of the members is in the events of the run, even if it comes last.
  if (over || finished == 0 || changesPending > 0 || writing > 0) return kj::READY_NOW;
  for (auto& seat: seats) {
    if (seat.isWorkingMember() && !seat.finished) return kj::READY_NOW;
  }
  // The destructor of the saver also waits for the disk, but it blocks the event loop meanwhile, so
  // that the launcher would regard this process as silent.
  auto written = best.finish().then([this]() { return averaged.finish(); }).then([this]() {
    return saver.whenIdle();
  });
  return written.then([this]() -> kj::Promise<void> {
    // The end of a change calls endIfFinished() again, and so does writeBeside().
    if (over || changesPending > 0 || writing > 0) return kj::READY_NOW;
    warnOfChangesNotMade();
    recordOrThrow([&](Event::Builder event) {
      event.initFinished().setWeightsSha256(weightsSha256);
      event.getFinished().setSeconds(run_s());
    });
    over = true;
    return endAll();
  });
}

void Job::warnOfChangesNotMade() {
  KJ_IF_MAYBE(known, plan) {
    auto made = members.changes().size(), wanted = known->changes(epochsTrained);
    if (made >= wanted) return;
    configs::warn(kj::str("this run has repeated only ", made, " of the ", wanted, " losses and ",
        "joins of workers of the other run, so its weights differ from those of the other run"));
  }
}

// Tells every role that the job is over, and waits for at most a second.
kj::Promise<void> Job::endAll() {
  kj::Vector<kj::Promise<void>> calls;
  for (auto& seat: seats) {
    KJ_IF_MAYBE(member, seat.member) calls.add(member->endRequest().send().ignoreResult());
  }
  return kj::joinPromises(calls.releaseAsArray())
      .exclusiveJoin(running.until(running.passed() + 1 * kj::SECONDS))
      // A role that leaves during the call has received it.
      .catch_([](kj::Exception&&) {})
      .then([this]() { ending.fulfiller->fulfill(); });
}

void Job::taskFailed(kj::Exception&& exception) {
  // If the folder was removed, the exception only names a file that cannot be written.
  if (isInPlace()) fail(kj::str(exception.getDescription()));
}

void Job::fail(kj::String reason, kj::Exception::Type type) {
  if (over) return;
  over = true;
  ending.fulfiller->reject(kj::Exception(type, __FILE__, __LINE__, kj::mv(reason)));
}

void Job::record(Fill fill) {
  capnp::MallocMessageBuilder message;
  auto event = newEvent(message);
  fill(event);
  append(event);
}

void Job::recordOrThrow(Fill fill) {
  capnp::MallocMessageBuilder message;
  auto event = newEvent(message);
  fill(event);
  log.append(event);
}

void Job::tellLauncher(Fill fill) {
  capnp::MallocMessageBuilder message;
  auto event = newEvent(message);
  fill(event);
  log.show(event);
}

Event::Builder Job::newEvent(capnp::MessageBuilder& message) const {
  auto event = message.initRoot<Event>();
  stamp(event);
  return event;
}

void Job::append(Event::Reader event) {
  tasks->add(kj::evalNow([&]() -> kj::Promise<void> {
    log.append(event);
    return kj::READY_NOW;
  }));
}

void Job::stamp(Event::Builder event) const {
  event.setTimeS((clock.now() - kj::UNIX_EPOCH) / kj::NANOSECONDS * 1e-9);
}

}  // namespace runner
