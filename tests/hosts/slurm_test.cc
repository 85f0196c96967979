// Jobs on the nodes of a separate Slurm.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>

#include "tests/faults/failure.h"
#include "tests/hosts/conditions.h"
#include "tests/hosts/slurm_hosts.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

TEST_CASE("tasks of Slurm on four nodes train the same bits as one machine, also by sbatch") {
  KJ_IF_MAYBE(why, Slurm::whyNot()) SKIP_CASE(why->cStr());
  auto conditions = conditionsOf(SHORT, Slurm::ROLES);
  Slurm slurm;
  for (auto& condition: conditions) {
    CAPTURE(condition.name);
    slurm.hosts.setVariables(ODD_HOST, condition.hostVariables);
    auto ended = slurm.run(SHORT, condition.settings)->wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    CHECK(contains(ended.output, condition.weightsSha256));
  }
  slurm.hosts.setVariables(ODD_HOST, nullptr);
  // Neither the secret nor the file of hosts.
  auto files = slurm.hosts.shell(0, kj::str("ls ", slurm.runs, "/short/1"));
  CHECK(!contains(files, "secret"));
  CHECK(!contains(files, "rank_hosts"));
  slurm.checkNoRoleRuns();

  // The recipe of docs/clusters.md, outside of an allocation.
  auto script = kj::str(RUNNER, " run ", SHORT,
      " --set cluster.launcher=slurm --set cluster.servers=2 --set cluster.workers=3");
  auto submitted =
      slurm.start(0, {"sh", "-c",
                         kj::str(script, " --dry-run | sbatch --nodes=4 --chdir=", slurm.runs,
                             " --output=", slurm.folder, "/out.txt")});
  CHECK(submitted->wait().exitCode == 0);
  auto followed =
      slurm.start(0, {"sh", "-c", kj::str("tail -F ", slurm.folder, "/out.txt 2>/dev/null")});
  CHECK(followed->waitForOutput(conditions[0].weightsSha256));
}

TEST_CASE("a killed Slurm task is named with its host; Ctrl-C and a lost launcher leave no task") {
  KJ_IF_MAYBE(why, Slurm::whyNot()) SKIP_CASE(why->cStr());
  Slurm slurm;
  auto killed = slurm.run(ENDLESS);
  REQUIRE(killed->waitForOutput("Speed: "));
  // Server 0 and worker 0 run on h1, server 1 and worker 1 on h2, worker 2 on h3.
  KJ_SYSCALL(::kill(slurm.find(2, "runner role").pid, SIGKILL));
  checkFailed(killed->wait(FAILS_WITHIN_S), {"worker 2 on h3"});
  slurm.checkNoRoleRuns();

  auto interrupted = slurm.run(ENDLESS);
  REQUIRE(interrupted->waitForOutput("Speed: "));
  KJ_SYSCALL(::kill(slurm.find(0, kj::str(RUNNER, " run ")).pid, SIGINT));
  CHECK(interrupted->wait(FAILS_WITHIN_S).exitCode == 130);
  slurm.checkNoRoleRuns();

  auto lost = slurm.run(ENDLESS);
  REQUIRE(lost->waitForOutput("Speed: "));
  KJ_SYSCALL(::kill(slurm.find(0, kj::str(RUNNER, " run ")).pid, SIGKILL));
  slurm.checkNoRoleRuns();
}

}  // namespace
}  // namespace tests
