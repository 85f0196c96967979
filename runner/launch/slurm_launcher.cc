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
#include "runner/text/shell_word.h"

namespace runner {

namespace {

constexpr const char* NODES = "SLURM_JOB_NODELIST";

class SlurmLauncher final: public Launcher {
public:
  explicit SlurmLauncher(const LaunchedRun& run): run(run) {}

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
    auto answered = answersInTime(run, kj::str("scontrol"), kj::mv(lines));
    return answered.then([this]() { return begin(); }).attach(kj::mv(asked));
  }

  StartedCoordinator startCoordinator(ListenPlace place) override {
    return startCoordinatorHere(run, kj::mv(place));
  }

  kj::Array<RoleGroup> groups() const override {
    return kj::arr(groupOfRanks("srun", rankedProcesses(run.experiment().cluster, nodes)));
  }

  kj::Own<StartedGroup> start(const RoleGroup&, kj::StringPtr coordinator) override {
    auto processes = rankedProcesses(run.experiment().cluster, nodes);
    auto& own = files.emplace(kj::heap<RankFiles>(run.folder, run.secret, processes, nodes));
    ::setenv("SLURM_HOSTFILE", own->hosts().cStr(), 1);
    // The runs of a sweep share an allocation, and otherwise each step waits until it has the
    // processors for itself. Versions of srun before 20.11 have no such option.
    ::setenv("SLURM_OVERLAP", "1", 1);
    kj::Vector<kj::String> words;
    for (auto word: {"srun", "--distribution=arbitrary", "--overcommit", "--label", "--input=none",
             "--mpi=none", "--cpu-bind=none", "--kill-on-bad-exit=1"}) {
      words.add(kj::str(word));
    }
    words.add(kj::str("--ntasks=", processes.size()));
    addCommandOfRank(words, run, *own, coordinator);
    return startRanks(run, words, kj::mv(processes), rankLineOfSlurm);
  }

  void allJoined() override { files = nullptr; }

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
  kj::Maybe<kj::Own<RankFiles>> files;
};

// Returns the lines of a script that request resources for runs. An allocation holds only one of
// these runs at a time.
kj::String request(kj::ArrayPtr<const Experiment* const> runs) {
  uint tasks = 0, threads = 0;
  for (auto run: runs) {
    tasks = kj::max(tasks, slurmTasks(*run));
    threads = kj::max(threads, run->cluster.threadsPerWorker);
  }
  return kj::str("#SBATCH --job-name=", runs[0]->name, "\n", "#SBATCH --ntasks=", tasks, "\n",
      "#SBATCH --cpus-per-task=", threads, "\n");
}

}  // namespace

kj::Own<Launcher> newSlurmLauncher(const LaunchedRun& run) {
  return kj::heap<SlurmLauncher>(run);
}

bool isInSlurm() {
  return ::getenv(NODES) != nullptr;
}

uint slurmTasks(const Experiment& experiment) {
  return groupsHere(experiment.cluster).size();
}

kj::String slurmScript(const LoadedExperiment& loaded) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  return kj::str("#!/bin/bash\n", "# Made by `runner run --dry-run` (", VERSION,
      ") for sbatch. Options of sbatch on its\n",
      "# command line, such as --nodes and --gpus-per-task, replace those here.\n",
      request({&experiment}), "file=$(mktemp --suffix=.toml)\n", "trap 'rm -f \"$file\"' EXIT\n",
      "cat >\"$file\" <<'END OF THE EXPERIMENT'\n", loaded.resolved, "\nEND OF THE EXPERIMENT\n",
      shellWord(ownPath()), " run \"$file\"\n");
}

kj::String slurmScript(kj::ArrayPtr<const Experiment* const> runs,
    kj::ArrayPtr<const RunFolder> folders, kj::Maybe<uint> parallel) {
  kj::String array;
  if (folders.size() > 1) {
    array = kj::str("#SBATCH --array=0-", folders.size() - 1);
    KJ_IF_MAYBE(limit, parallel) array = kj::str(array, "%", *limit);
    array = kj::str(array, "\n");
  }
  auto words = KJ_MAP(folder, folders) {
    return kj::str("  ", shellWord(absolute(folder)), "\n");
  };
  // The run replaces the shell, so that it receives Slurm's signals and its exit code is the job's.
  return kj::str("#!/bin/bash\n", "# Made by `runner run` (", VERSION, ").\n", request(runs), array,
      "#SBATCH --output=/dev/null\n", "folders=(\n", kj::strArray(words, ""), ")\n",
      "folder=${folders[${SLURM_ARRAY_TASK_ID:-0}]}\n",
      "exec >\"$folder/output.txt\" 2>\"$folder/messages.txt\"\n", "exec ", shellWord(ownPath()),
      " run \"$folder/experiment.toml\" --folder \"$folder\" --resume\n");
}

}  // namespace runner
