#include "runner/launch/mpi_launcher.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/launch/local_launcher.h"
#include "runner/launch/ranks.h"
#include "runner/system/child_process.h"
#include "runner/system/files.h"
#include "runner/system/line_stream.h"
#include "runner/text/shell_word.h"

namespace runner {

namespace {

// The names of the options of one kind of mpirun.
struct MpirunKind {
  kj::StringPtr version;  // part of what `mpirun --version` prints
  kj::StringPtr hosts;    // the option for a file with the host of each rank
  kj::Array<kj::String> (*options)(bool hasHosts);  // `hasHosts`: there is such a file
  ReadRankLine read;
};

kj::Array<kj::String> optionsOfOpenMpi(bool hasHosts) {
  kj::Vector<kj::String> words;
  // The hosts in their order, one rank each. Without a file of hosts, OpenMPI finds no host for
  // this.
  if (hasHosts) {
    for (auto word: {"--map-by", "seq"}) words.add(kj::str(word));
  }
  // Roles choose their number of threads themselves.
  for (auto word: {"--oversubscribe", "--bind-to", "none", "--tag-output"}) {
    words.add(kj::str(word));
  }
  if (::geteuid() == 0) words.add(kj::str("--allow-run-as-root"));
  return words.releaseAsArray();
}

kj::Array<kj::String> optionsOfHydra(bool) {
  return kj::arr(kj::str("-bind-to"), kj::str("none"), kj::str("-prepend-rank"));
}

constexpr MpirunKind KINDS[] = {
    {"Open"_kj, "--hostfile"_kj, optionsOfOpenMpi, rankLineOfOpenMpi},
    {"HYDRA"_kj, "-f"_kj, optionsOfHydra, rankLineOfHydra},
};

// The variables that give ssh options: of OpenMPI 4, OpenMPI 5 and MPICH. Without a limit, ssh
// waits for minutes for a host that does not answer. A question of ssh would not reach the user.
constexpr const char* SSH_OPTIONS[] = {
    "OMPI_MCA_plm_rsh_args", "PRTE_MCA_plm_ssh_args", "HYDRA_LAUNCHER_EXTRA_ARGS"};

class MpiLauncher final: public Launcher {
public:
  explicit MpiLauncher(const LaunchedRun& run): run(run) {}

  kj::Promise<ListenPlace> prepare() override {
    auto& cluster = run.experiment().cluster;
    auto words = mpirun();
    words.add(kj::str("--version"));
    auto asked = kj::heap<ChildProcess>(cluster.mpirun, kj::StringPtr(words[0]), words, nullptr,
        *run.io.lowLevelProvider, run.io.unixEventPort);
    auto lines = kj::joinPromises(kj::arr(read(*asked->output), read(*asked->errors)));
    auto answered = answersInTime(run, kj::str(cluster.mpirun, " --version"), kj::mv(lines));
    return answered.then([this]() { return begin(); }).attach(kj::mv(asked));
  }

  StartedCoordinator startCoordinator(ListenPlace place) override {
    return startCoordinatorHere(run, kj::mv(place));
  }

  kj::Array<RoleGroup> groups() const override {
    auto& cluster = run.experiment().cluster;
    return kj::arr(groupOfRanks("mpirun", rankedProcesses(cluster, cluster.hosts)));
  }

  kj::Own<StartedGroup> start(const RoleGroup&, kj::StringPtr coordinator) override {
    auto& cluster = run.experiment().cluster;
    auto processes = rankedProcesses(cluster, cluster.hosts);
    auto& own =
        files.emplace(kj::heap<RankFiles>(run.folder, run.secret, processes, cluster.hosts));
    auto words = mpirun();
    bool hasHosts = cluster.hosts.size() > 0;
    for (auto& word: kind->options(hasHosts)) words.add(kj::mv(word));
    if (hasHosts) {
      words.add(kj::str(kind->hosts));
      words.add(kj::str(own->hosts()));
    }
    words.add(kj::str("-n"));
    words.add(kj::str(processes.size()));
    for (auto variable: SSH_OPTIONS)
      ::setenv(variable, "-o ConnectTimeout=10 -o BatchMode=yes", false);
    addCommandOfRank(words, run, *own, coordinator);
    return startRanks(run, words, kj::mv(processes), kind->read);
  }

  void allJoined() override { files = nullptr; }

private:
  // Returns the words of the command.
  kj::Vector<kj::String> mpirun() const {
    // ClusterConfig has checked the command.
    auto given = KJ_ASSERT_NONNULL(wordsOfShell(run.experiment().cluster.mpirun));
    kj::Vector<kj::String> words;
    for (auto& word: given) words.add(kj::mv(word));
    return words;
  }

  kj::Promise<void> read(kj::AsyncInputStream& lines) {
    return readLines(lines, [this](kj::StringPtr line) { said.add(kj::str(line)); });
  }

  ListenPlace begin() {
    auto& cluster = run.experiment().cluster;
    auto text = kj::strArray(said, "\n");
    for (auto& each: KINDS) {
      if (strstr(text.cStr(), each.version.cStr()) != nullptr) kind = &each;
    }
    if (kind == nullptr) {
      auto first = said.empty() ? kj::str("nothing") : kj::str('`', said[0], '`');
      configs::fail("`", cluster.mpirun, " --version` prints ", first,
          ", so it is not the mpirun of OpenMPI or MPICH. Install one of them, or name it with ",
          "cluster.mpirun");
    }
    for (auto& host: cluster.hosts) {
      if (host.sshPort == 0) continue;
      configs::fail("mpirun takes no ssh port, but cluster.hosts has ", host.toString(),
          ". Write `Host ", host.name, "` with `Port ", host.sshPort, "` into ~/.ssh/config");
    }
    return listenPlaceFor(cluster);
  }

  const LaunchedRun& run;
  kj::Vector<kj::String> said;
  const MpirunKind* kind = nullptr;
  kj::Maybe<kj::Own<RankFiles>> files;
};

}  // namespace

kj::Own<Launcher> newMpiLauncher(const LaunchedRun& run) {
  return kj::heap<MpiLauncher>(run);
}

}  // namespace runner
