#include "runner/role_command.h"

#include <kj/thread.h>
#include <kj/vector.h>
#include <unistd.h>

#include "runner/launchers.h"
#include "runner/model_facts.h"
#include "runner/roles.h"
#include "runner/trace_file.h"

namespace runner {

namespace {

// Roles of one kind that the job has.
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
  KJ_IF_MAYBE(steps, options.trace) {
    auto made = ModelFacts(experiment).steps(experiment);
    auto path = options.folder.trace(roleWord(options.role), options.index);
    return whyNoTrace(*steps, made, path, "--folder DIR");
  }
  return nullptr;
}

}  // namespace

kj::Maybe<kj::String> runRoles(
    LoadedExperiment& loaded, const RoleOptions& options, CommandLine& commandLine) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  KJ_IF_MAYBE(why, wrong(experiment, options)) return kj::mv(*why);
  addRecords(loaded);

  // Nobody but the coordinator has events to write.
  auto run = [&](uint index) {
    RoleOptions own{options.role, index, kj::str(options.coordinator),
        {kj::str(options.folder.path)}, options.trace, options.launched};
    auto failure = kj::runCatchingExceptions(
        [&]() { runRole(loaded, own, kj::AutoCloseFd(::dup(STDOUT_FILENO))); });
    // Without a word to the others, which would wait for this one.
    KJ_IF_MAYBE(e, failure) commandLine.endWith(*e, LOST_A_PEER_EXIT);
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
