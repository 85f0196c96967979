#include "runner/commands/role_process.h"

#include <kj/async-unix.h>
#include <kj/thread.h>
#include <kj/vector.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>
#include <atomic>

#include "io/datasets/datasets.h"
#include "nn/lost_device.h"
#include "runner/commands/resumed_run.h"
#include "runner/commands/run_results.h"
#include "runner/commands/slurm_run.h"
#include "runner/experiment/model_facts.h"
#include "runner/launch/launcher.h"
#include "runner/launch/run_view.h"
#include "runner/launch/slurm_queue.h"
#include "runner/logs/role_names.h"
#include "runner/logs/run_lock.h"
#include "runner/roles/address_file.h"
#include "runner/roles/free_index.h"
#include "runner/roles/job_secret.h"
#include "runner/roles/roles.h"
#include "runner/roles/trace_file.h"
#include "runner/system/interrupts.h"
#include "runner/system/output.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"

namespace runner {

namespace {

// Returns how many roles of one kind the job may have.
uint places(const ClusterConfig& cluster, Role role) {
  switch (role) {
    case Role::COORDINATOR:
      return 1;
    case Role::SERVER:
      return cluster.servers;
    case Role::WORKER:
      return cluster.seats();
  }
  KJ_UNREACHABLE;
}

kj::Maybe<kj::String> wrong(const Experiment& experiment, const ProcessRoles& roles) {
  auto& options = roles.first;
  auto& cluster = experiment.cluster;
  auto name = roleName(options.role, options.index);
  if (options.index >= places(cluster, options.role)) {
    return kj::str("there is no ", name, " in this job: it has ", cluster.roles());
  }
  if (options.role == Role::SERVER && cluster.serversOfProcess(options.index) == 0) {
    uint first = options.index - options.index % cluster.serversPerProcess;
    return kj::str(name, " shares the process of ", roleName(Role::SERVER, first),
        " (cluster.servers_per_process): start that one");
  }
  const ListenPlace onLoopback;
  if (options.role == Role::COORDINATOR || options.listen != nullptr) {
    auto& host = options.listen.orDefault(onLoopback).host;
    KJ_IF_MAYBE(why, whyNoSecret(host, cluster.tls, options.secret)) return kj::mv(*why);
  }
  // The coordinator records no trace.
  if (options.role == Role::COORDINATOR) return nullptr;
  KJ_IF_MAYBE(steps, options.trace) {
    auto made = ModelFacts(experiment).steps(experiment);
    auto path = options.folder.trace(roleWord(options.role), options.index);
    return whyNoTrace(*steps, made, path, "--folder DIR");
  }
  return nullptr;
}

// A role of this process that shares the other settings of `options`.
RoleOptions sibling(const RoleOptions& options, Role role, uint index) {
  RoleOptions own{role, index, kj::str(options.coordinator), {kj::str(options.folder.path)}};
  own.trace = options.trace;
  own.launched = options.launched;
  own.secret = options.secret;
  own.isFromEnvironment = options.isFromEnvironment;
  own.resumes = options.resumes;
  own.membershipOf = kj::str(options.membershipOf);
  own.meetsInFolder = options.meetsInFolder;
  own.signals = kj::heapArray(options.signals.asPtr());
  return own;
}

// The worker in a coordinator's process. It starts when the coordinator listens.
class CarriedWorker {
public:
  // All arguments must outlive it.
  CarriedWorker(
      const LoadedExperiment& loaded, const RoleOptions& options, CommandLine& commandLine)
      : loaded(loaded), options(options), commandLine(commandLine) {}

  // `event` is one of the coordinator's.
  void see(Event::Reader event) {
    if (event.isListening()) {
      auto own = sibling(options, Role::WORKER, options.index);
      own.coordinator = kj::str(event.getListening().getAddress());
      // The coordinator's event loop has captured the signals by now, so this thread blocks them.
      thread = kj::heap<kj::Thread>([this, own = kj::mv(own)]() { run(own); });
    }
    bool isOwn = event.getRole() == Role::WORKER && event.getIndex() == options.index;
    if (event.isJoined() && isOwn) hasJoined = true;
    if (event.isMembership() && isOwn) isLost = !event.getMembership().getJoined();
  }

  // Waits for the end of the worker, after the job has ended well. Does not wait in other cases,
  // because the thread of a lost worker may hang.
  void end() {
    if (isLost && thread.get() != nullptr) thread->detach();
    thread = nullptr;
  }

private:
  void run(const RoleOptions& own) {
    auto work = [&]() { runRole(loaded, own, [](Event::Reader, kj::StringPtr) {}); };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(work)) {
      // A worker that has joined reports its failure to the coordinator, which then ends the
      // process.
      if (!hasJoined) commandLine.endWith(*e, RUN_FAILED);
      return;
    }
    tell(kj::str(roleName(own.role, own.index), ": the job is done"));
  }

  const LoadedExperiment& loaded;
  const RoleOptions& options;
  CommandLine& commandLine;
  std::atomic<bool> hasJoined{false};
  bool isLost = false;
  kj::Own<kj::Thread> thread;
};

// A coordinator without a launcher prints what a launcher would print about the run. It also leaves
// the same files in the folder.
[[noreturn]] void runCoordinatorByHand(const LoadedExperiment& loaded, RoleOptions& options,
    const rpc::Secret& drawn, kj::Maybe<CarriedWorker&> worker, CommandLine& commandLine) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  ModelFacts facts(experiment);
  bool isNew = options.folder.path.size() == 0;
  if (!isNew) refuseQueued(options.folder);
  bool awaited = !isNew && isAwaited(options.folder);
  // A coordinator that cannot listen leaves no folder.
  ListeningCoordinator coordinator(loaded, options);
  bool repeats = options.membershipOf.size() > 0;
  if (options.resumes && !repeats && repeatsMembers(options.folder)) {
    refuseWithoutMembership(options.folder);
  }
  auto own = kj::heap<HeldRunFolder>(
      isNew ? newRunFolder("runs", experiment.name) : RunFolder{kj::str(options.folder.path)});
  auto& held = *own;
  // Before the run has begun, the folder may still hold another one.
  held.lock.mayRefuse(awaited);
  held.lock.noteByHand();
  held.lock.noteInterrupts();
  // The lock must outlive an exception that ends the command.
  commandLine.atEnd([own = kj::mv(own)](int code) { own->lock.noteExit(code); });
  OutputThread outputThread;
  SingleRunView view(experiment, facts.epochs(experiment), facts.steps(experiment));
  if (options.resumes) view.noteBefore(held.folder);
  bool hasBegun = false;
  kj::Maybe<AddressFile> addressFile;
  auto show = [&](Event::Reader event, kj::StringPtr) {
    if (!hasBegun) {
      held.lock.accept();
      forgetSlurmJob(held.folder);
      held.lock.noteByHand();
      if (repeats) held.lock.noteRepeatsMembers();
    }
    hasBegun = true;
    if (event.isListening()) {
      auto address = event.getListening().getAddress();
      if (options.meetsInFolder) {
        addressFile.emplace(held.folder, CoordinatorPlace{kj::str(address), drawn});
      }
      view.say(openingOf(experiment, facts, held.folder));
      view.say(options.isFromEnvironment
                   ? kj::str("coordinator listens on ", address)
                   : kj::str("coordinator listens on ", address,
                         "; start the servers and workers with --coordinator ", address));
    } else {
      view.show(event);
    }
    KJ_IF_MAYBE(own, worker) own->see(event);
  };
  auto endEarly = [&](kj::Maybe<const kj::Exception&> failure) {
    addressFile = nullptr;
    view.end();
    if (failure == nullptr) {
      view.say("interrupted; the servers and workers lose the coordinator and end");
    }
    if (hasBegun) reportBrokenRun(held.folder, experiment.name);
    // Nobody else reports that the run has failed.
    KJ_IF_MAYBE(e, failure) commandLine.endWith(*e, RUN_FAILED);
    commandLine.endWith(INTERRUPTED);
  };
  options.endEarly = endEarly;
  auto failure = kj::runCatchingExceptions([&]() { coordinator.run(held.folder, show); });
  KJ_IF_MAYBE(e, failure) endEarly(*e);
  addressFile = nullptr;
  view.end();
  KJ_IF_MAYBE(own, worker) own->end();
  auto& weights = KJ_ASSERT_NONNULL(view.weightsSha256, "the run ended without weights");
  commandLine.endWith(reportRun(held.folder, experiment.name, weights, facts.graph.classes, view));
}

[[noreturn]] void runCoordinatorProcess(
    const LoadedExperiment& loaded, ProcessRoles roles, CommandLine& commandLine) {
  auto& first = roles.first;
  if (!roles.carryCoordinator) {
    runCoordinatorByHand(loaded, first, roles.drawn, nullptr, commandLine);
  }
  auto coordinator = sibling(first, Role::COORDINATOR, 0);
  coordinator.listen = kj::mv(first.listen);
  CarriedWorker worker(loaded, first, commandLine);
  runCoordinatorByHand(loaded, coordinator, roles.drawn, worker, commandLine);
}

// Returns the exit code of a role that has failed with `failure`.
int exitCodeOf(const kj::Exception& failure) {
  bool hasLostPeer = failure.getType() == kj::Exception::Type::DISCONNECTED;
  return hasLostPeer ? LOST_A_PEER_EXIT : RUN_FAILED;
}

// Ends the process without destructors, which would wait for the compute thread.
void endHanging(const kj::Exception& failure) {
  tell(kj::str("error: ", reasonOf(failure),
      ". This worker still has not finished its step, so the process ends at once"));
  finishOutput();
  ::_exit(exitCodeOf(failure));
}

// Lets the C library keep freed arrays of up to 32 MB each, 1 GB in all. A role allocates the same
// arrays for each checkpoint. Without this, the kernel spent a quarter of the process's system time
// on mapping their pages again.
void keepFreedMemory() {
  constexpr int MMAP_MAX_BYTES = 32 << 20;  // the largest value that is allowed
  constexpr int KEPT_MAX_BYTES = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, MMAP_MAX_BYTES);
  ::mallopt(M_TRIM_THRESHOLD, KEPT_MAX_BYTES);
}

}  // namespace

kj::Maybe<kj::String> runRoles(
    LoadedExperiment& loaded, ProcessRoles roles, CommandLine& commandLine) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  auto& first = roles.first;
  KJ_IF_MAYBE(why, wrong(experiment, roles)) return kj::mv(*why);
  keepFreedMemory();
  KJ_IF_MAYBE(data, first.data) {
    // The launcher has checked that these are the records of the run.
    experiment.data.copy = kj::mv(data->folder);
    loaded.digest = kj::mv(data->digest);
  } else {
    if (first.launched && experiment.cluster.launcher->word == LauncherKind::SSH) {
      experiment.data.names.otherwise =
          ", or let `runner run --copy-data` copy that of its machine to its hosts";
    }
    // Launcher `local` has looked for changes already.
    bool isLaunchedHere =
        first.launched && experiment.cluster.launcher->word == LauncherKind::LOCAL;
    if (!isLaunchedHere) {
      io::lookForChanges(experiment.data, io::unheard());
    }
    addRecords(loaded);
  }
  if (roles.takesIndex) first.index = takeIndex(loaded, first);
  if (first.role == Role::WORKER) {
    experiment.cluster.devices = experiment.cluster.devicesOf(first.index, first.workersBefore);
  }
  bool hasCoordinator = first.role == Role::COORDINATOR || roles.carryCoordinator;
  if (hasCoordinator && !first.launched) {
    runCoordinatorProcess(loaded, kj::mv(roles), commandLine);
  }
  bool mayLeave = first.role == Role::WORKER && experiment.cluster.onLoss->continues;
  if (!first.launched || mayLeave) {
    // SIGTERM comes from `runner scale`, by way of the launcher, or from a system that wants its
    // machine back.
    first.signals = first.launched ? kj::arr<int>(SIGTERM) : interrupts();
    // Threads that begin later block these signals, too.
    for (int signal: first.signals) kj::UnixEventPort::captureSignal(signal);
  }
  if (!first.launched) first.endHanging = endHanging;

  // Ends the process at once, without stopping the other roles in it, which would wait for this
  // one.
  auto endWith = [&](const RoleOptions& own, const kj::Exception& failure) {
    int code = exitCodeOf(failure);
    bool isRank = own.launched && own.isFromEnvironment;
    if (nn::hasLostDevice()) {
      if (isRank) tell(LOST_DEVICE_LINE);
      commandLine.endWith(failure, LOST_DEVICE_EXIT);
    }
    if (code == LOST_A_PEER_EXIT && isRank) tell(LOST_A_PEER_LINE);
    commandLine.endWith(failure, code);
  };
  if (first.role == Role::COORDINATOR) {
    first.endEarly = [&](kj::Maybe<const kj::Exception&> failure) {
      endWith(first, KJ_REQUIRE_NONNULL(failure, "a launcher interrupts its job itself"));
    };
  }

  auto run = [&](const RoleOptions& own) {
    auto failure = kj::runCatchingExceptions([&]() {
      // Only the coordinator has events to report.
      runRole(loaded, own, RunLog::toLauncher(kj::AutoCloseFd(::dup(STDOUT_FILENO))));
    });
    KJ_IF_MAYBE(e, failure) endWith(own, *e);
    if (own.launched) return;
    tell(kj::str(roleName(own.role, own.index), ": the job is done"));
  };
  uint count = first.role == Role::SERVER ? experiment.cluster.serversOfProcess(first.index) : 1;
  kj::Vector<kj::Own<kj::Thread>> others;
  for (uint i = 1; i < count; i++) {
    others.add(kj::heap<kj::Thread>(
        [&run, own = sibling(first, first.role, first.index + i)]() { run(own); }));
  }
  run(first);
  return nullptr;
}

}  // namespace runner
