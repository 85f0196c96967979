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

TEST_CASE("launcher ssh names each host that is not ready, and why") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(2, SSHD);
  auto refuse = [&](kj::StringPtr names, std::initializer_list<kj::StringPtr> words) {
    checkFailed(runBySsh(hosts, SHORT, names)->wait(), words);
  };
  refuse("h2 nowhere", {"host nowhere: no machine of this name is known"});
  refuse("h2:23", {"host h2:23: nothing listens on its ssh port"});
  refuse("10.77.0.99", {"host 10.77.0.99: there is no route to it"});
  auto blank = runBySsh(hosts, SHORT, "h2", {"cluster.ssh=\"'/my tools/ssh' -x\""});
  checkFailed(blank->wait(), {"host h2: cannot start /my tools/ssh: "});
}

TEST_CASE("a host that crashes ends a job by ssh, and nothing is left on the others") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(3, SSHD);
  auto run = runBySsh(hosts, ENDLESS, "h2 h3");
  REQUIRE(run->waitForOutput("Speed: "));
  hosts.crash(2);
  checkFailed(run->wait(), {"h3", "Nothing is left running here, and each host ends its roles"});
  checkNothingLeft(hosts, {0, 1});
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
