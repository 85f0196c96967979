// Jobs whose roles `runner run` starts on several hosts by ssh.
#include <doctest/doctest.h>
#include <signal.h>
#include <initializer_list>

#include "tests/faults/failure.h"
#include "tests/hosts/hosts.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr Hosts::Settings SSHD{.hasSshd = true};

// Starts `runner run` on host 0, with all roles on the others: a server on h2, workers on h2 and
// h3.
kj::Own<Command> runBySsh(const Hosts& hosts, kj::StringPtr file, kj::StringPtr runs,
    std::initializer_list<kj::StringPtr> more = {}) {
  kj::Vector<kj::StringPtr> words;
  words.addAll(std::initializer_list<kj::StringPtr>{RUNNER, "run", file, "--runs", runs, "--set",
      "cluster.launcher=ssh", "--set", "cluster.servers=1"});
  words.addAll(more);
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  return hosts.start(0, words, environment);
}

void checkNothingLeft(const Hosts& hosts, std::initializer_list<kj::uint> which) {
  constexpr kj::uint GONE_WITHIN_S = 5;
  for (auto host: which) CHECK(haveEnded(hosts.processes(host), GONE_WITHIN_S));
}

TEST_CASE("launcher ssh trains the same bits on four hosts, and brings the program along") {
  auto settings = SSHD;
  settings.lastLacksLibraries = true;
  KJ_IF_MAYBE(why, Hosts::whyNot(settings)) SKIP_CASE(why->cStr());
  constexpr kj::StringPtr ONE_SERVER[] = {"cluster.servers=1"_kj};
  auto alone = train(SHORT, ONE_SERVER);
  Hosts hosts(4, settings);
  auto run =
      runBySsh(hosts, SHORT, newFolder(), {"--set", "cluster.hosts=[\"h2\", \"h3\", \"h4\"]"});
  auto ended = run->wait();
  INFO(ended.errors);
  REQUIRE(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
  CHECK(contains(ended.errors, "copying this program to h4"));
  CHECK(contains(ended.output, "| worker 1 | tcp |"));
  checkNothingLeft(hosts, {0, 1, 2, 3});
}

TEST_CASE("launcher ssh names each host that is not ready, and why") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(2, SSHD);
  auto refuse = [&](kj::StringPtr names, std::initializer_list<kj::StringPtr> words) {
    auto set = kj::str("cluster.hosts=", names);
    checkFailed(runBySsh(hosts, SHORT, newFolder(), {"--set", set})->wait(), words);
  };
  refuse("[\"h2\", \"nowhere\"]", {"host nowhere: no machine of this name is known"});
  refuse("[\"h2:23\"]", {"host h2:23: nothing listens on its ssh port"});
  refuse("[\"10.77.0.99\"]", {"host 10.77.0.99: there is no route to it"});
}

TEST_CASE("a host that crashes ends a job by ssh, and nothing is left on the others") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(3, SSHD);
  auto run = runBySsh(hosts, ENDLESS, newFolder(), {"--set", "cluster.hosts=[\"h2\", \"h3\"]"});
  REQUIRE(run->waitForOutput("Speed: "));
  hosts.crash(2);
  checkFailed(run->wait(), {"h3"});
  checkNothingLeft(hosts, {0, 1});
}

TEST_CASE("an interrupted job by ssh leaves nothing on any host") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(3, SSHD);
  auto run = runBySsh(hosts, ENDLESS, newFolder(), {"--set", "cluster.hosts=[\"h2\", \"h3\"]"});
  REQUIRE(run->waitForOutput("Speed: "));
  for (auto& process: hosts.processes(0)) {
    if (contains(process.commandLine, "runner run")) ::kill(process.pid, SIGINT);
  }
  CHECK(run->wait().exitCode == 130);
  checkNothingLeft(hosts, {0, 1, 2});
}

TEST_CASE("a launcher that is killed leaves nothing on any host") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(3, SSHD);
  auto run = runBySsh(hosts, ENDLESS, newFolder(), {"--set", "cluster.hosts=[\"h2\", \"h3\"]"});
  REQUIRE(run->waitForOutput("Speed: "));
  run->killGroup(SIGKILL);
  run->wait();
  checkNothingLeft(hosts, {0, 1, 2});
}

}  // namespace
}  // namespace tests
