#include "runner/launch/slurm_launcher.h"

#include <kj/debug.h>
#include <stdlib.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/launch/local_launcher.h"
#include "runner/launch/ranks.h"
#include "runner/system/addresses.h"
#include "runner/system/child_process.h"
#include "runner/system/line_stream.h"
#include "runner/system/version.h"

namespace runner {

namespace {

constexpr const char* NODES = "SLURM_JOB_NODELIST";

class SlurmLauncher final: public Launcher {
public:
  explicit SlurmLauncher(const LaunchedRun& run): run(run) {}

  ~SlurmLauncher() noexcept(false) {
    if (hostFile.size() > 0) ::unlink(hostFile.cStr());
  }

  kj::Promise<ListenPlace> prepare() override {
    // Only Slurm can read its lists: `n[1-3,7]`.
    auto words = kj::arr(
        kj::str("scontrol"), kj::str("show"), kj::str("hostnames"), kj::str(::getenv(NODES)));
    auto asked = kj::heap<ChildProcess>(
        "scontrol", "scontrol"_kj, words, nullptr, *run.io.lowLevelProvider, run.io.unixEventPort);
    auto lines = readLines(*asked->output, [this](kj::StringPtr line) {
      Host host;
      host.name = kj::str(line);
      nodes.add(kj::mv(host));
    });
    return lines.then([this]() { return begin(); }).attach(kj::mv(asked));
  }

  StartedCoordinator startCoordinator(ListenPlace place) override {
    return startCoordinatorHere(run, kj::mv(place));
  }

  kj::Array<RoleGroup> groups() const override {
    return kj::arr(groupOfRanks("srun", rankedProcesses(run.experiment().cluster, nodes)));
  }

  kj::Own<StartedGroup> start(const RoleGroup&, kj::StringPtr coordinator) override {
    auto processes = rankedProcesses(run.experiment().cluster, nodes);
    hostFile = writeRankHosts(run.folder, processes, nodes);
    ::setenv("SLURM_HOSTFILE", hostFile.cStr(), 1);
    kj::Vector<kj::String> words;
    for (auto word: {"srun", "--distribution=arbitrary", "--overcommit", "--label", "--input=none",
             "--mpi=none", "--cpu-bind=none", "--kill-on-bad-exit=1"}) {
      words.add(kj::str(word));
    }
    words.add(kj::str("--ntasks=", processes.size()));
    auto& file = secret.emplace(kj::heap<SecretFile>(run.folder, run.secret));
    addCommandOfRank(words, run, *file, coordinator);
    return startRanks(run, words, kj::mv(processes), rankLineOfSlurm);
  }

  void allJoined() override { secret = nullptr; }

private:
  ListenPlace begin() {
    if (nodes.empty()) {
      configs::fail("`scontrol show hostnames ", ::getenv(NODES), "` (", NODES,
          ") names no host. Is Slurm installed here?");
    }
    KJ_IF_MAYBE(word, run.experiment().cluster.interface) return {addressOfInterface(*word)};
    auto names = KJ_MAP(node, nodes)->kj::StringPtr {
      return node.name;
    };
    return {addressTowards(names)};
  }

  const LaunchedRun& run;
  kj::Vector<Host> nodes;
  kj::Maybe<kj::Own<SecretFile>> secret;
  kj::String hostFile;
};

}  // namespace

kj::Own<Launcher> newSlurmLauncher(const LaunchedRun& run) {
  return kj::heap<SlurmLauncher>(run);
}

bool isInSlurm() {
  return ::getenv(NODES) != nullptr;
}

kj::String slurmScript(const LoadedExperiment& loaded) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  auto& cluster = experiment.cluster;
  return kj::str("#!/bin/bash\n", "# Made by `runner run --dry-run` (", VERSION,
      ") for sbatch. Options of sbatch on its\n",
      "# command line, such as --nodes and --gpus-per-task, replace those here.\n",
      "#SBATCH --job-name=", experiment.name, "\n", "#SBATCH --ntasks=", groupsHere(cluster).size(),
      "\n", "#SBATCH --cpus-per-task=", cluster.threadsPerWorker, "\n",
      "file=$(mktemp --suffix=.toml)\n", "trap 'rm -f \"$file\"' EXIT\n",
      "cat >\"$file\" <<'END OF THE EXPERIMENT'\n", loaded.resolved, "\nEND OF THE EXPERIMENT\n",
      "'", ownPath(), "' run \"$file\"\n");
}

kj::String slurmAdvice() {
  return kj::str(
      "launcher `slurm` starts roles in an allocation of Slurm, and this process is in none. ",
      "Submit the script that this command prints with --dry-run:\n",
      "  runner run … --dry-run | sbatch --nodes 4 --wait");
}

}  // namespace runner
