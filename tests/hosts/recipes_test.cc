// The recipes of docs/clusters.md for ssh, mpirun and Slurm, unchanged except for the names of
// hosts and files. x.toml has 1 server and 2 workers.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

#include "tests/faults/failure.h"
#include "tests/hosts/hosts.h"
#include "tests/hosts/slurm_hosts.h"
#include "tests/recipe.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr Hosts::Settings SSHD{.hasSshd = true};

// A folder with x.toml, which all hosts share.
struct Shared {
  const Trained alone = train("tests/faults/short.toml", {"cluster.servers=1"});
  const kj::String folder = newFolder();
  const kj::String path = pathSetting();
  const kj::String cache = cacheSetting();

  Shared() {
    writeFile(kj::str(folder, "/x.toml"), readFile(kj::str(alone.folder, "/experiment.toml")));
  }

  // Runs the lines on host 0, and checks that they end with exit code 0. Returns their output.
  kj::String run(const Hosts& hosts, kj::StringPtr lines,
      kj::ArrayPtr<const kj::StringPtr> environment = nullptr) const {
    kj::Vector<kj::StringPtr> all;
    all.add(path);
    all.add(cache);
    all.addAll(environment);
    auto script = kj::str("cd ", folder, "\n", lines);
    auto ended = hosts.start(0, {"bash", "-ec", script}, all)->wait();
    INFO(script);
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    return kj::mv(ended.output);
  }

  void checkBits(kj::StringPtr output) const {
    CHECK(contains(output, kj::str("weights sha256=", alone.weightsSha256)));
  }
};

// Returns the line of a recipe that begins with `word`, with another folder for the run.
kj::String lineOf(kj::StringPtr recipe, kj::StringPtr word, kj::StringPtr runFolder) {
  for (auto& line: linesOf(recipe)) {
    if (!line.startsWith(word)) continue;
    constexpr kj::StringPtr MARK = "/shared/runs/x"_kj;
    auto at = ::strstr(line.cStr(), MARK.cStr());
    KJ_REQUIRE(at != nullptr, line);
    return kj::str(line.slice(0, at - line.begin()), runFolder, at + MARK.size());
  }
  KJ_FAIL_REQUIRE("no such line", recipe, word);
}

TEST_CASE("ssh: the recipe trains the same bits as one machine") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Shared shared;
  Hosts hosts(3, SSHD);
  // me@node2:2222
  hosts.shell(2, "echo me:x:0:0::/tmp/home:/bin/bash >> /etc/passwd");
  hosts.shell(2, "/usr/sbin/sshd -f /run/sshd_config -p 2222 -o PidFile=/run/second.pid");
  shared.checkBits(shared.run(hosts, withHosts(recipe("ssh", "cluster.launcher=ssh"), "h2", "h3")));
}

TEST_CASE("mpirun: the recipes for runner run and for runner role train the same bits") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  KJ_IF_MAYBE(why, whyNotInstalled({"mpirun"})) SKIP_CASE(why->cStr());
  Shared shared;
  Hosts hosts(3, SSHD);
  shared.checkBits(
      shared.run(hosts, withHosts(recipe("mpirun", "cluster.launcher=mpi"), "h2", "h3")));

  // There, every host has `runner` in its PATH.
  for (uint host: {1, 2}) hosts.setVariables(host, {shared.path});
  writeFile(kj::str(shared.folder, "/hosts"), "h1\nh2 slots=2\nh3\n");
  auto line = lineOf(
      recipe("By another system", "mpirun -np"), "mpirun ", kj::str(shared.folder, "/by-mpirun"));
  shared.checkBits(
      shared.run(hosts, line, {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}));
}

TEST_CASE("Slurm: the recipes for runner run, sbatch and runner role train the same bits") {
  KJ_IF_MAYBE(why, Slurm::whyNot()) SKIP_CASE(why->cStr());
  Shared shared;
  Slurm slurm;
  auto settings = kj::str("SLURM_CONF=", slurm.folder, "/slurm.conf");
  // Of sbatch: return when the job has ended.
  kj::StringPtr environment[] = {settings, "SBATCH_WAIT=1"};
  shared.checkBits(
      shared.run(slurm.hosts, recipe("Slurm", "SBATCH_TIMELIMIT"), kj::arrayPtr(environment, 1)));
  auto submitted = shared.run(slurm.hosts, recipe("Slurm", "| sbatch --nodes"), environment);
  CHECK(contains(submitted, "Submitted batch job 2"));
  shared.checkBits(readFile(kj::str(shared.folder, "/slurm-2.out")));
  auto line =
      lineOf(recipe("By another system", "srun -n"), "srun ", kj::str(shared.folder, "/by-srun"));
  shared.checkBits(shared.run(slurm.hosts, line, kj::arrayPtr(environment, 1)));
}

}  // namespace
}  // namespace tests
