#include "runner/roles/roles.h"

#include <kj/debug.h>

#include "configs/language/failure.h"
#include "rpc/shard/shard_server.h"
#include "rpc/wire/listener.h"
#include "runner/checkpoints/checkpoints.h"
#include "runner/checkpoints/weights.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/events.h"
#include "runner/logs/role_names.h"
#include "runner/logs/run_ending.h"
#include "runner/logs/run_log.h"
#include "runner/logs/run_record.h"
#include "runner/roles/carry_over.h"
#include "runner/roles/coordinator.h"
#include "runner/roles/instruction_set_choice.h"
#include "runner/roles/job_secret.h"
#include "runner/roles/member_plan.h"
#include "runner/roles/membership.h"
#include "runner/roles/shard_saver.h"
#include "runner/roles/store_updater.h"
#include "runner/roles/trace_file.h"
#include "runner/system/files.h"
#include "runner/system/interrupts.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"

namespace runner {

namespace {

// A job that fails gets this time to complete the checkpoint that it is writing. The launcher waits
// a little longer for the cause of the failure.
constexpr auto WRITES_WITHIN = 1 * kj::SECONDS;

// Answers the coordinator for a server.
class ServerCalls final: public MemberCalls {
public:
  ServerCalls(rpc::ServedShard& store, uint index): store(store), saver(store.shard, index) {}

  kj::Promise<void> count(Pushes::Builder pushes) override {
    return store.service.countsRequest().send().then(
        [pushes](capnp::Response<rpc::ShardService::CountsResults>&& counts) mutable {
          pushes.setPushed(counts.getPushed());
          pushes.setDropped(counts.getDropped());
          auto from = counts.getStaleness();
          auto to = pushes.initStaleness(from.size());
          for (auto i: kj::indices(from)) to.set(i, from[i]);
        });
  }
  void saveShard(uint64_t step) override { saver.save(step); }
  kj::Array<rpc::Shard::SliceSteps> fenceWorker(uint rank) override {
    return store.members.fence(rank);
  }
  void leaveWorker(uint rank) override { store.members.leave(rank); }
  void admitWorker(uint rank, uint64_t step) override { store.members.admit(rank, step); }

  ShardSaver& ofShard() { return saver; }

private:
  rpc::ServedShard& store;
  ShardSaver saver;
};

// Whether the launcher starts all workers on this machine.
bool workersAreHere(const Experiment& experiment, const RoleOptions& options) {
  auto word = experiment.cluster.launcher->word;
  return options.launched && (word == LauncherKind::LOCAL || word == LauncherKind::INLINE);
}

// Throws if the folder has a run of another experiment, or a run that has finished. Continuing such
// a run would cut its events.
void requireUnfinished(const LoadedExperiment& loaded, const RunFolder& folder) {
  if (lastLineOf(folder.events()).size() == 0) return;
  auto record = readRecordToResume(folder.path);
  if (record.digest.size() > 0 && record.digest != loaded.digest) {
    configs::fail("cannot continue the run in ", folder.path,
        ": it belongs to another experiment. Continue it with the file that made it, or name "
        "another ",
        "folder");
  }
  if (record.state == RunRecord::FINISHED &&
      whyNotWeights(folder.weights(), record.weightsSha256) == nullptr) {
    configs::fail("the run in ", folder.path,
        " has already finished. Name another folder to begin a new run");
  }
}

// Whether the events in `folder` say which run is there.
bool saysWhichRun(const RunFolder& folder) {
  return lastLineOf(folder.events()).size() > 0 &&
         readRecordToResume(folder.path).digest.size() > 0;
}

// Returns the checkpoint from which the run continues, and sets newer ones aside. Null if there is
// none: the run then begins again, and the weights of an unknown run are set aside, too. Throws,
// and changes nothing, if another program, file or user could use one, or if the run must not
// continue. A launcher has made sure that it has not finished.
kj::Maybe<FoundCheckpoint> checkpointOf(
    const LoadedExperiment& loaded, const RunFolder& folder, bool launched) {
  kj::Vector<kj::String> refused;
  auto found = newestCheckpoint(
      folder, loaded.digest.asPtr(), [&](kj::String why) { refused.add(kj::mv(why)); });
  if (found == nullptr) requireContinuable(folder, loaded.digest);
  if (!launched) requireUnfinished(loaded, folder);
  kj::Maybe<kj::String> aside;
  if (found == nullptr && !saysWhichRun(folder)) aside = setResultsAside(folder);
  for (auto& why: refused) tell(why);
  KJ_IF_MAYBE(sentence, aside) {
    tell(*sentence);
  } else if (found == nullptr && refused.size() > 0) {
    tell(kj::str("no checkpoint of ", folder.path, " can be used, so the run begins again"));
  }
  KJ_IF_MAYBE(checkpoint, found) {
    auto& cluster = KJ_ASSERT_NONNULL(loaded.experiment).cluster;
    requireSameInstructionSet(
        cluster.instructionSet, checkpoint->point.instructionSet, folder.path);
  }
  setAsideAfter(folder, found.map([](auto& own) -> const FoundCheckpoint& { return own; }));
  return found;
}

RunLog logOf(const Experiment& experiment, const RoleOptions& options, const RunFolder& folder,
    const kj::Maybe<FoundCheckpoint>& from, RunLog::Tell tell, kj::Maybe<TensorBoard> board,
    kj::Maybe<kj::Own<const LogAccess>> access) {
  auto& style = *experiment.log.style;
  if (!options.resumes) {
    return RunLog(folder, style, kj::mv(tell), kj::mv(board), kj::mv(access));
  }
  SavedPoint begin;
  auto& point = from.map([](auto& own) -> const SavedPoint& { return own.point; }).orDefault(begin);
  return RunLog::resume(
      folder, style, kj::mv(tell), kj::mv(board), kj::mv(access), point.events_bytes, point.logs);
}

// Whether the coordinator is a process that a launcher may ask to save the run.
bool canBeSignalled(const Experiment& experiment, const RoleOptions& options) {
  return options.launched && experiment.cluster.launcher->word != LauncherKind::INLINE;
}

// Never resolves.
kj::Promise<void> saveAtSignals(kj::UnixEventPort& port, Job& job) {
  return port.onSignal(SAVE_SIGNAL).then([&port, &job](siginfo_t&&) {
    job.saveNow();
    return saveAtSignals(port, job);
  });
}

}  // namespace

struct ListeningCoordinator::Socket {
  kj::Array<int> signals;
  kj::AsyncIoContext io;
  kj::Own<rpc::Listener> listener;
};

ListeningCoordinator::ListeningCoordinator(
    const LoadedExperiment& loaded, const RoleOptions& options)
    : loaded(loaded), options(options) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  auto signals = options.launched ? nullptr : interrupts();
  for (int signal: signals) kj::UnixEventPort::captureSignal(signal);
  auto io = options.newIo();
  const ListenPlace onLoopback;
  auto& place = options.listen.orDefault(onLoopback);
  KJ_IF_MAYBE(why, whyNoSecret(place.host, experiment.cluster.tls, options.secret))
    configs::fail(*why);
  auto ports = place.ports.orDefault(experiment.cluster.ports);
  auto listener = rpc::Listener::listen(io.provider->getNetwork(), rpc::TCP, place.host, ports)
                      .wait(io.waitScope);
  socket = kj::heap<Socket>(Socket{kj::mv(signals), kj::mv(io), kj::mv(listener)});
}

ListeningCoordinator::~ListeningCoordinator() noexcept(false) = default;

void ListeningCoordinator::run(
    const RunFolder& folder, RunLog::Tell tell, kj::Maybe<kj::Own<const LogAccess>> access) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  auto& [signals, io, listener] = *socket;
  ModelFacts facts(experiment);
  kj::Maybe<TensorBoard> board;
  if (experiment.log.tensorboard) board.emplace(folder.tensorboard());
  if (!options.launched) refuseOtherFiles(folder, isResolved);
  auto from = options.resumes ? checkpointOf(loaded, folder, options.launched) : nullptr;
  requireBeginning(experiment, folder, from);
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> saving;
  auto tellAll = [&saving, tell = kj::mv(tell)](Event::Reader event, kj::StringPtr json) mutable {
    if (endsSaving(event)) {
      KJ_IF_MAYBE(fulfiller, saving) (*fulfiller)->fulfill();
    }
    tell(event, json);
  };
  auto log =
      logOf(experiment, options, folder, from, kj::mv(tellAll), kj::mv(board), kj::mv(access));
  // A launcher writes this file itself.
  if (!options.launched) writeWhole(folder.experiment(), loaded.resolved);
  auto job = kj::refcounted<Job>(loaded, facts, folder, log, io.provider->getTimer(),
      kj::systemPreciseCalendarClock(), from, workersAreHere(experiment, options),
      options.oneThread);
  KJ_DEFER(job->close());
  if (options.membershipOf.size() > 0) {
    job->repeat({{kj::str(options.membershipOf)}, experiment.cluster.seats()});
  }
  job->recordInstructionSet();
  rpc::Identity identity{roleName(Role::COORDINATOR, 0), options.secret, experiment.cluster.tls};
  rpc::TellRefused noteRefused = [&](kj::StringPtr sentence) { job->noteRefused(sentence); };
  auto serving = listener->serve(
      io.provider->getTimer(), jobMessageLimits(facts), job->bootstrap(), identity, noteRefused);
  auto over = job->run(options.launched);
  if (canBeSignalled(experiment, options)) {
    over = over.exclusiveJoin(saveAtSignals(io.unixEventPort, *job));
  }

  job->showAddress(listener->address().tcp);
  int interrupt = 0;
  auto save = [&, &io = io, &signals = signals](int signal) -> kj::Promise<void> {
    interrupt = signal;
    if (!experiment.checkpoint.isOn()) return kj::READY_NOW;
    auto saved = kj::newPromiseAndFulfiller<void>();
    saving = kj::mv(saved.fulfiller);
    job->saveNow();
    return saved.promise.exclusiveJoin(io.provider->getTimer().afterDelay(SAVES_WITHIN))
        .exclusiveJoin(interruption(io, signals).ignoreResult());
  };
  over = over.exclusiveJoin(interruption(io, signals).then(kj::mv(save)));
  auto run = [&, &io = io]() { over.exclusiveJoin(kj::mv(serving)).wait(io.waitScope); };
  auto failed = kj::runCatchingExceptions(run);
  // The run has ended. A failure since then only comes from roles that leave.
  if (log.lastEvent() != nullptr) return;
  if (interrupt != 0) {
    appendEnding(log, Ending::INTERRUPTED, reasonOfInterrupt(interrupt));
    // Only a process without a launcher has captured signals.
    return KJ_ASSERT_NONNULL(options.endEarly)(nullptr);
  }
  KJ_IF_MAYBE(failure, failed) {
    if (canBeSignalled(experiment, options) && job->hasLostRole()) {
      runner::tell(LOST_ROLE_LINE);
    }
    if (options.endEarly != nullptr) {
      auto& timer = io.provider->getTimer();
      auto written = job->whenWritten().exclusiveJoin(timer.afterDelay(WRITES_WITHIN));
      kj::runCatchingExceptions([&, &io = io]() { written.wait(io.waitScope); });
    }
    if (!options.launched) {
      // The failure may be that nothing can be written. The caller still reports the failure.
      kj::runCatchingExceptions([&]() { appendEnding(log, Ending::FAILED, reasonOf(*failure)); });
    }
    KJ_IF_MAYBE(end, options.endEarly) (*end)(*failure);
    kj::throwFatalException(kj::mv(*failure));
  }
}

void runServer(const LoadedExperiment& loaded, const RoleOptions& options) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  auto io = options.newIo();
  rpc::pollOften(io.waitScope);
  ModelFacts facts(experiment);
  auto placement = placementOf(experiment, facts.graph);
  auto updater = shardUpdater(experiment, facts);
  kj::Maybe<kj::UnixEventPort&> port;
  if (experiment.kvstore.sharesMemory()) port = io.unixEventPort;
  auto trace = traceOf(options, experiment, facts);
  kj::Maybe<rpc::ShardTrace&> shardTrace;
  KJ_IF_MAYBE(own, trace) {
    shardTrace = (*own)->ofShard(experiment.cluster.seats(), placement.slices.size());
  }
  auto store = rpc::newShardServer(
      placement, options.index, experiment.rounds(), *updater, port, shardTrace);
  ServerCalls calls(store, options.index);
  auto membership = Membership::join(
      io, loaded, options, *experiment.kvstore.transport, jobMessageLimits(facts),
      [](RoleProgress::Builder) {}, calls)
                        .wait(io.waitScope);
  auto identity = membership->identity();
  kj::Promise<void> toldThatItServes = nullptr;
  auto serving = calls.ofShard().begin(*membership).then([&]() {
    auto served = membership->listener().serve(io.provider->getTimer(),
        rpc::limitsFor(placement, experiment.cluster.connectionSilence()), store.service, identity);
    toldThatItServes = membership->session().startRequest().send().ignoreResult().eagerlyEvaluate(
        [&](kj::Exception&& e) { membership->fail(kj::mv(e)); });
    return served;
  });
  auto run = [&]() { membership->ended().exclusiveJoin(kj::mv(serving)).wait(io.waitScope); };
  KJ_IF_MAYBE(failure, kj::runCatchingExceptions(run)) {
    if (options.launched) kj::throwFatalException(kj::mv(*failure));
    auto reason = membership->tellFailure(*failure).wait(io.waitScope);
    kj::throwFatalException(kj::Exception(failure->getType(), __FILE__, __LINE__, kj::mv(reason)));
  }
  KJ_IF_MAYBE(own, trace) {
    writeTrace(**own, experiment, options, placement, facts.graph.keys, membership->clockAhead());
  }
}

void runRole(const LoadedExperiment& loaded, const RoleOptions& options, RunLog::Tell tell,
    kj::Maybe<kj::Own<const LogAccess>> access) {
  switch (options.role) {
    case Role::COORDINATOR:
      ListeningCoordinator(loaded, options).run(options.folder, kj::mv(tell), kj::mv(access));
      return;
    case Role::SERVER:
      return runServer(loaded, options);
    case Role::WORKER:
      return runWorker(loaded, options);
  }
}

}  // namespace runner
