// Jobs by ssh on hosts where something is wrong.
#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/faults/failure.h"
#include "tests/hosts/ssh_job.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;

TEST_CASE("a link that is cut for two seconds changes no bit of a job by ssh") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  constexpr kj::StringPtr SETTINGS[] = {"cluster.servers=1"_kj, "train.epochs=6"_kj};
  auto alone = train(SHORT, SETTINGS);
  Hosts hosts(3, SSHD);
  auto run = runBySsh(hosts, SHORT, "h2 h3", {"train.epochs=6"});
  REQUIRE(run->waitForOutput("Speed: "));
  hosts.cut(2);
  CHECK_FALSE(run->waitForOutput("weights sha256=", 2));
  hosts.join(2);
  auto ended = run->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
}

TEST_CASE("clocks that are off by an hour on two hosts change no bit of a job by ssh") {
  if (hasAddressSanitizer()) SKIP_CASE("the address sanitizer wants to be loaded before faketime");
  constexpr kj::StringPtr LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"_kj;
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  if (::access(LIBRARY.cStr(), R_OK) != 0) SKIP_CASE("faketime is not installed");
  constexpr kj::StringPtr SETTINGS[] = {"cluster.servers=1"_kj, "cluster.tls=true"_kj};
  auto alone = train(SHORT, SETTINGS);
  Hosts hosts(3, SSHD);
  auto library = kj::str("LD_PRELOAD=", LIBRARY);
  auto here = ::atol(hosts.shell(0, "date +%s").cStr());
  for (uint host: {1, 2}) {
    hosts.setVariables(host,
        {library, host == 1 ? "FAKETIME=-1h" : "FAKETIME=+1h", "FAKETIME_DONT_FAKE_MONOTONIC=1"});
    auto there = ::atol(hosts.shell(host, "date +%s").cStr());
    CHECK(::labs(there - here) > 3000);
  }
  auto ended = runBySsh(hosts, SHORT, "h2 h3", SETTINGS)->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
  checkNothingLeft(hosts, {0, 1, 2});
}

constexpr kj::StringPtr RESTARTS[] = {"train.epochs=3"_kj, "cluster.on_loss=restart"_kj,
    "cluster.silence_timeout_s=2"_kj, "checkpoint.every_s=0.25"_kj,
    "cluster.ssh=ssh -o ConnectTimeout=2"_kj};
constexpr kj::StringPtr ELSEWHERE = ". Its roles are started on other hosts"_kj;

kj::StringPtr weightsAlone() {
  constexpr kj::StringPtr SETTINGS[] = {"cluster.servers=1"_kj, "train.epochs=3"_kj};
  static const auto trained = train(SHORT, SETTINGS);
  return trained.weightsSha256;
}

TEST_CASE("the roles of a lost host are started on another host, with the same bits") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  auto alone = weightsAlone();
  Hosts hosts(3, SSHD);
  auto run = runBySsh(hosts, SHORT, "h2 h3", RESTARTS);
  REQUIRE(run->waitForOutput("Speed: "));
  hosts.crash(2);
  auto ended = run->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone));
  CHECK(contains(ended.errors, "host h3 (worker 1): "));
  CHECK(contains(ended.errors, ELSEWHERE));
  checkNothingLeft(hosts, {0, 1});
}

TEST_CASE("roles that wake up after their replacements on another host are refused, and end") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  auto alone = weightsAlone();
  Hosts hosts(3, SSHD);
  kj::Vector<kj::StringPtr> settings;
  settings.addAll(kj::arrayPtr(RESTARTS, kj::size(RESTARTS)));
  // The replacements listen at the same addresses as the lost roles.
  settings.add("cluster.port=\"7000-7001\"");
  auto run = runBySsh(hosts, SHORT, "h2 h3", settings);
  REQUIRE(run->waitForOutput("Speed: "));
  auto frozen = hosts.processes(2);
  for (auto& process: frozen) ::kill(process.pid, SIGSTOP);
  hosts.cut(2);
  CHECK(run->waitForErrors(ELSEWHERE));
  for (auto& process: frozen) ::kill(process.pid, SIGCONT);
  hosts.join(2);
  auto ended = run->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone));
  checkNothingLeft(hosts, {0, 1, 2});
}

// Sends `number` to the worker on a host.
void signalWorker(const Hosts& hosts, uint host, int number) {
  for (auto& process: hosts.processes(host)) {
    if (contains(process.commandLine, "--role=worker")) ::kill(process.pid, number);
  }
}

TEST_CASE(
    "a job by ssh continues without lost workers, and others take their places on their hosts") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(4, SSHD);
  auto run = runBySsh(hosts, SHORT, "h2 h3 h4",
      {"train.epochs=8", "cluster.workers=3", "cluster.on_loss=continue"});
  REQUIRE(run->waitForOutput("Epoch[1] Batch [100]"));
  signalWorker(hosts, 3, SIGKILL);
  REQUIRE(run->waitForErrors("worker 2 has joined at step "));
  signalWorker(hosts, 2, SIGTERM);
  REQUIRE(run->waitForErrors("worker 1 has joined at step "));
  auto ended = run->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, "weights sha256="));
  CHECK(contains(ended.errors, "worker 2 on h4 was killed by signal 9 (Killed)"));
  CHECK(contains(ended.errors, "worker 1 on h3 received SIGTERM"));
  CHECK(contains(ended.errors, "worker 1 has left before step "));
  CHECK_FALSE(contains(ended.errors, "All roles are started again"));
  checkNothingLeft(hosts, {0, 1, 2, 3});
}

TEST_CASE("a job by ssh that could continue without a worker restarts if the host is lost") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(4, SSHD);
  auto run = runBySsh(hosts, SHORT, "h2 h3 h4",
      {"train.epochs=3", "cluster.workers=3", "cluster.on_loss=continue",
          "cluster.silence_timeout_s=2", "checkpoint.every_s=0.25",
          "cluster.ssh=ssh -o ConnectTimeout=2"});
  REQUIRE(run->waitForOutput("Epoch[1] Batch [100]"));
  hosts.crash(3);
  auto ended = run->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.errors, ELSEWHERE));
  checkNothingLeft(hosts, {0, 1, 2});
}

TEST_CASE("nothing stays on a host that is cut off for good from a job by ssh") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  Hosts hosts(3, SSHD);
  auto run = runBySsh(hosts, ENDLESS, "h2 h3");
  REQUIRE(run->waitForOutput("Speed: "));
  hosts.cut(2);
  CHECK(run->wait().exitCode == 1);
  checkNothingLeft(hosts, {0, 1, 2});
}

}  // namespace
}  // namespace tests
