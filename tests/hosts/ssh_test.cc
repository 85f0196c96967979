// Jobs whose roles `runner run` starts on several hosts by ssh.
#include <doctest/doctest.h>
#include <signal.h>

#include "tests/faults/failure.h"
#include "tests/hosts/conditions.h"
#include "tests/hosts/ssh_job.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

TEST_CASE("launcher ssh trains the same bits on four hosts, and brings the program along") {
  auto settings = SSHD;
  settings.lastLacksLibraries = true;
  KJ_IF_MAYBE(why, Hosts::whyNot(settings)) SKIP_CASE(why->cStr());
  constexpr kj::StringPtr ROLES[] = {"cluster.servers=1"_kj, "cluster.workers=3"_kj};
  Hosts hosts(4, settings);
  for (auto& condition: conditionsOf(SHORT, ROLES)) {
    CAPTURE(condition.name);
    hosts.setVariables(ODD_HOST, condition.hostVariables);
    auto run = runBySsh(hosts, SHORT, "h2 h3 h4", condition.settings);
    auto ended = run->wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    CHECK(contains(ended.output, condition.weightsSha256));
    CHECK(contains(ended.output, "| worker 2 | tcp |"));
    checkNothingLeft(hosts, {0, 1, 2, 3});
  }
  CHECK(hosts.shell(3, "ls ~/.cache/runner/programs | wc -l") == "1\n");
}

TEST_CASE(
    "launcher ssh names the roles of a host on whose ssh port nothing listens, and a missing ssh") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(2, SSHD);
  checkFailed(runBySsh(hosts, SHORT, "h2:23")->wait(),
      {"host h2:23 (server 0, worker 0, worker 1): nothing listens on its ssh port"});
  auto blank = runBySsh(hosts, SHORT, "h2", {"cluster.ssh=\"'/my tools/ssh' -x\""});
  checkFailed(
      blank->wait(), {"host h2 (server 0, worker 0, worker 1): cannot start /my tools/ssh: "});
}

TEST_CASE("an interrupted job by ssh leaves nothing on any host") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(3, SSHD);
  auto run = runBySsh(hosts, ENDLESS, "h2 h3");
  REQUIRE(run->waitForOutput("Speed: "));
  for (auto& process: hosts.processes(0)) {
    if (contains(process.commandLine, "runner run")) ::kill(process.pid, SIGINT);
  }
  auto ended = run->wait();
  CHECK(ended.exitCode == 130);
  CHECK(contains(ended.errors,
      "all processes have ended here, and each host ends its roles when it loses this machine"));
  checkNothingLeft(hosts, {0, 1, 2});
}

TEST_CASE("a launcher that is killed leaves nothing on any host") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(3, SSHD);
  auto run = runBySsh(hosts, ENDLESS, "h2 h3");
  REQUIRE(run->waitForOutput("Speed: "));
  run->killGroup(SIGKILL);
  run->wait();
  checkNothingLeft(hosts, {0, 1, 2});
}

}  // namespace
}  // namespace tests
