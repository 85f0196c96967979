#include "runner/commands/role_process.h"

#include <kj/thread.h>
#include <kj/vector.h>
#include <unistd.h>

#include "runner/commands/run_results.h"
#include "runner/experiment/model_facts.h"
#include "runner/launch/launcher.h"
#include "runner/launch/run_view.h"
#include "runner/logs/role_names.h"
#include "runner/roles/job_secret.h"
#include "runner/roles/roles.h"
#include "runner/roles/trace_file.h"
#include "runner/system/terminal.h"

namespace runner {

namespace {

// Returns how many roles of one kind the job has.
uint places(const ClusterConfig& cluster, Role role) {
  switch (role) {
    case Role::COORDINATOR:
      return 1;
    case Role::SERVER:
      return cluster.servers;
    case Role::WORKER:
      return cluster.workers;
  }
  KJ_UNREACHABLE;
}

kj::Maybe<kj::String> wrong(const Experiment& experiment, const RoleOptions& options) {
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
  if (options.role == Role::COORDINATOR) {
    KJ_IF_MAYBE(why, whyNoSecret(options.listen.host, options.secret)) return kj::mv(*why);
  }
  KJ_IF_MAYBE(steps, options.trace) {
    auto made = ModelFacts(experiment).steps(experiment);
    auto path = options.folder.trace(roleWord(options.role), options.index);
    return whyNoTrace(*steps, made, path, "--folder DIR");
  }
  return nullptr;
}

// A coordinator without a launcher prints what a launcher would print about the run. It also leaves
// the same files in the folder.
[[noreturn]] void runCoordinatorByHand(
    const LoadedExperiment& loaded, const RoleOptions& options, CommandLine& commandLine) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  ModelFacts facts(experiment);
  HeldRunFolder held({kj::str(options.folder.path)});
  commandLine.atEnd([&held](int code) { held.noteExit(code); });
  SingleRunView view(experiment, facts.epochs(experiment), facts.steps(experiment));
  bool hasBegun = false;
  auto show = [&](Event::Reader event, kj::StringPtr) {
    hasBegun = true;
    if (!event.isListening()) return view.show(event);
    auto address = event.getListening().getAddress();
    view.say(openingOf(experiment, facts, held.folder));
    view.say(kj::str("coordinator listens on ", address,
        "; start the servers and workers with --coordinator ", address));
  };
  bool isWhole = true;
  auto failure =
      kj::runCatchingExceptions([&]() { isWhole = runCoordinator(loaded, options, show); });
  view.end();
  KJ_IF_MAYBE(e, failure) {
    // If this run has not begun, the folder may hold another run.
    if (hasBegun) reportBrokenRun(held.folder, experiment.name);
    // Nobody else reports that the run has failed.
    commandLine.endWith(*e, RUN_FAILED);
  }
  if (!isWhole) {
    view.say("interrupted; the servers and workers lose the coordinator and end");
    reportBrokenRun(held.folder, experiment.name);
    commandLine.endWith(INTERRUPTED);
  }
  auto& weights = KJ_ASSERT_NONNULL(view.weightsSha256, "the run ended without weights");
  commandLine.endWith(reportRun(held.folder, experiment.name, weights, view));
}

}  // namespace

kj::Maybe<kj::String> runRoles(
    LoadedExperiment& loaded, const RoleOptions& options, CommandLine& commandLine) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  KJ_IF_MAYBE(why, wrong(experiment, options)) return kj::mv(*why);
  if (options.role == Role::WORKER) {
    experiment.cluster.devices = experiment.cluster.devicesOf(options.index);
  }
  addRecords(loaded);
  if (options.role == Role::COORDINATOR && !options.launched) {
    runCoordinatorByHand(loaded, options, commandLine);
  }

  auto run = [&](uint index) {
    RoleOptions own{options.role, index, kj::str(options.coordinator),
        {kj::str(options.folder.path)}, options.trace, options.launched, options.secret,
        {kj::str(options.listen.host), options.listen.ports}};
    auto failure = kj::runCatchingExceptions([&]() {
      // Only the coordinator has events to report.
      runRole(loaded, own, RunLog::toLauncher(kj::AutoCloseFd(::dup(STDOUT_FILENO))));
    });
    // Ends the process at once, without stopping the other roles in it, which would wait for this
    // one.
    KJ_IF_MAYBE(e, failure) commandLine.endWith(*e, LOST_A_PEER_EXIT);
    if (own.launched) return;
    tell(kj::str(roleName(own.role, own.index), ": the job is done"));
  };
  uint first = options.index;
  uint count = options.role == Role::SERVER ? experiment.cluster.serversOfProcess(first) : 1;
  kj::Vector<kj::Own<kj::Thread>> others;
  for (uint i = 1; i < count; i++) {
    others.add(kj::heap<kj::Thread>([&run, index = first + i]() { run(index); }));
  }
  run(first);
  return nullptr;
}

}  // namespace runner
