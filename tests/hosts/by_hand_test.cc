// Jobs over several hosts whose roles are started by hand.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <initializer_list>

#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/hosts/hosts.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr uint PORT = 7000;

// A job whose coordinator runs on host 0, and each of its other roles on a separate host.
struct JobOnHosts {
  JobOnHosts(const Hosts& hosts, kj::StringPtr file, uint servers, uint workers)
      : hosts(hosts), file(file) {
    auto place = kj::str(hosts.address(0), ":", PORT);
    coordinator = start(0, {"--role", "coordinator", "--folder", folder, "--listen", place});
    KJ_REQUIRE(coordinator->waitForErrors("coordinator listens on "), coordinator->errors());
    uint host = 1;
    auto add = [&](kj::StringPtr role, uint index) {
      auto number = kj::str(index);
      roles.add(start(host++, {"--role", role, "--index", number, "--coordinator", place}));
    };
    for (uint i = 0; i < servers; i++) add("server", i);
    for (uint i = 0; i < workers; i++) add("worker", i);
  }

  kj::Own<Command> start(uint host, std::initializer_list<kj::StringPtr> options) {
    kj::Vector<kj::StringPtr> words;
    words.addAll(std::initializer_list<kj::StringPtr>{RUNNER, "role", file});
    words.addAll(options);
    auto cache = cacheSetting();
    auto secretSetting = kj::str("RUNNER_SECRET_FILE=", secret);
    kj::StringPtr environment[] = {cache, secretSetting};
    return hosts.start(host, words, environment);
  }

  const Hosts& hosts;
  kj::StringPtr file;
  const kj::String secret = newSecretFile();
  const kj::String folder = kj::str(newFolder(), "/run");
  kj::Own<Command> coordinator;
  kj::Vector<kj::Own<Command>> roles;
};

TEST_CASE("a job on four hosts trains the same bits as on one machine") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  constexpr kj::StringPtr ONE_SERVER[] = {"cluster.servers=1"_kj};
  auto alone = train(SHORT, ONE_SERVER);
  // The resolved file of that run, so that the roles need no --set.
  auto file = kj::str(alone.folder, "/experiment.toml");
  Hosts hosts(4);
  JobOnHosts job(hosts, file, 1, 2);
  auto ended = job.coordinator->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
  for (auto& role: job.roles) CHECK(role->wait(FAILS_WITHIN_S).exitCode == 0);
  auto events = readFile(kj::str(job.folder, "/events.jsonl"));
  CHECK(contains(events, "\"transport\":\"tcp\""));
  // Each server listens where it reaches the coordinator.
  CHECK(contains(events, kj::str("\"joined\":{\"address\":\"", hosts.address(1), ":")));
}

TEST_CASE("a job on four hosts with TLS trains the same bits as on one machine without it") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  constexpr kj::StringPtr ONE_SERVER[] = {"cluster.servers=1"_kj};
  auto alone = train(SHORT, ONE_SERVER);
  auto file = kj::str(newFolder(), "/short.toml");
  writeFile(
      file, kj::str("extends = \"", alone.folder, "/experiment.toml\"\n[cluster]\ntls = true\n"));
  Hosts hosts(4);
  JobOnHosts job(hosts, file, 1, 2);
  auto ended = job.coordinator->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
  for (auto& role: job.roles) CHECK(role->wait(FAILS_WITHIN_S).exitCode == 0);
  CHECK(contains(readFile(kj::str(job.folder, "/events.jsonl")), "\"transport\":\"tcp\""));
}

TEST_CASE("a coordinator names the port that is taken, and the address that is not its own") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  Hosts hosts(2);
  JobOnHosts first(hosts, SHORT, 0, 0);
  auto refuse = [&](uint host, kj::StringPtr why) {
    auto place = kj::str(hosts.address(0), ":", PORT);
    auto second =
        first.start(host, {"--role", "coordinator", "--folder", newFolder(), "--listen", place});
    checkFailed(second->wait(FAILS_WITHIN_S), {kj::str("cannot listen on ", place), why});
  };
  refuse(0,
      "the port is in use. Choose other ports (cluster.port, or where this address was given), or "
      "stop "
      "the program");
  refuse(1, "this machine does not have that address. `ip address` shows those that it has");
}

TEST_CASE("a host that is cut off for good ends a job, and the message names its role") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  Hosts hosts(5);
  JobOnHosts job(hosts, ENDLESS, 2, 2);
  REQUIRE(job.coordinator->waitForOutput("Speed: "));
  hosts.cut(4);
  checkFailed(job.coordinator->wait(), {"worker 1", "cluster.silence_timeout_s"});
  // The cut-off host notices it too, so nothing stays behind.
  for (auto& role: job.roles) CHECK(role->wait(3 * FAILS_WITHIN_S).exitCode == 75);
}

TEST_CASE("a host that is cut off for a second changes no bit") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  // Longer than this program takes to cut the host off.
  constexpr kj::StringPtr SETTINGS[] = {"cluster.servers=1"_kj, "train.epochs=6"_kj};
  auto alone = train(SHORT, SETTINGS);
  auto file = kj::str(alone.folder, "/experiment.toml");
  Hosts hosts(4);
  JobOnHosts job(hosts, file, 1, 2);
  REQUIRE(job.coordinator->waitForOutput("Speed: "));
  hosts.cut(1);
  // The job cannot end during the cut, which lasts a second.
  CHECK_FALSE(job.coordinator->waitForOutput("weights sha256=", 1));
  hosts.join(1);
  auto ended = job.coordinator->wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
}

TEST_CASE("a coordinator that cannot listen leaves its folder free for the next attempt") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  Hosts hosts(1);
  JobOnHosts job(hosts, SHORT, 0, 0);
  auto folder = newFolder();
  auto place = kj::str(hosts.address(0), ":", PORT);
  auto start = [&](kj::StringPtr at) {
    return job.start(0, {"--role", "coordinator", "--folder", folder, "--listen", at});
  };
  CHECK(start(place)->wait(FAILS_WITHIN_S).exitCode == 1);
  auto second = start(hosts.address(0));
  CHECK(second->waitForErrors("coordinator listens on "));
}

}  // namespace
}  // namespace tests
