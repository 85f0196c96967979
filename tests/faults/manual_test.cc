// Launcher manual: `runner run` starts the coordinator, and the user starts everything else.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr kj::StringPtr MANUAL = "cluster.launcher=manual"_kj;
constexpr kj::StringPtr BEGIN = "runner role "_kj;

// Returns the commands for the roles that `run` has printed. Waits for all `count` of them.
kj::Vector<kj::String> commandsOf(Run& run, kj::StringPtr last) {
  KJ_REQUIRE(run.command.waitForOutput(kj::str(last, " --coordinator ")), run.command.errors());
  kj::Vector<kj::String> commands;
  for (auto& line: linesOf(run.command.output())) {
    if (contains(line, BEGIN)) commands.add(kj::mv(line));
  }
  return commands;
}

// Runs a line as a user does who has `runner` on the path, in another folder.
kj::Own<Command> inTerminal(kj::StringPtr line) {
  char here[4096];
  KJ_REQUIRE(::getcwd(here, sizeof(here)) != nullptr);
  auto path = kj::str("PATH=", static_cast<const char*>(here), "/runner:", ::getenv("PATH"));
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache, path};
  kj::StringPtr words[] = {"sh", "-c", line};
  return kj::heap<Command>(words, Command::Surroundings{.folder = "/", .environment = environment});
}

TEST_CASE("manual: the printed commands train the same weights as the launcher local") {
  auto local = train(SHORT);
  Run run(SHORT, kj::arr(MANUAL));
  auto commands = commandsOf(run, "worker --index 1");
  REQUIRE(commands.size() == 4);
  CHECK(contains(run.command.errors(), "start these roles, in any order."));
  kj::Vector<kj::Own<Command>> roles;
  for (uint i: {3, 0, 2, 1}) roles.add(inTerminal(commands[i]));
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, kj::str("weights sha256=", local.weightsSha256)));
  for (auto& role: roles) CHECK(role->wait(FAILS_WITHIN_S).exitCode == 0);
  CHECK(run.read("table.md").size() > 0);
}

TEST_CASE("manual: servers that share a process have one command") {
  auto cache = cacheSetting();
  auto runs = newFolder();
  kj::StringPtr environment[] = {cache};
  kj::StringPtr words[] = {RUNNER, "run", SHORT, "--runs", runs, "--set", MANUAL, "--set",
      "cluster.servers_per_process=2"};
  Command command(words, {.environment = environment});
  REQUIRE(command.waitForOutput("worker --index 1 --coordinator "));
  kj::Vector<kj::Own<Command>> roles;
  for (auto& line: linesOf(command.output())) {
    if (contains(line, BEGIN)) roles.add(inTerminal(line));
  }
  CHECK(roles.size() == 3);
  auto ended = command.wait();
  INFO(ended.output, ended.errors);
  CHECK(ended.exitCode == 0);
}

TEST_CASE("manual: --trace is refused, since the roles end after runner run") {
  auto trace = kj::str(newFolder(), "/trace.json");
  auto runs = newFolder();
  kj::StringPtr words[] = {RUNNER, "run", SHORT, "--runs", runs, "--trace", trace, "--set", MANUAL};
  auto ended = Command(words).wait();
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "--trace reads what the roles leave on this machine"));
}

TEST_CASE("manual: with a secret, the commands name its file, and a role without it is refused") {
  auto secret = kj::str("RUNNER_SECRET_FILE=", newSecretFile());
  auto cache = cacheSetting();
  auto runs = newFolder();
  kj::StringPtr environment[] = {cache, secret};
  kj::StringPtr words[] = {RUNNER, "run", SHORT, "--runs", runs, "--set", MANUAL};
  Command command(words, {.environment = environment});
  REQUIRE(command.waitForOutput("worker --index 1 --coordinator "));
  auto lines = linesOf(command.output());
  REQUIRE(lines[0].startsWith(kj::str(secret, " runner role ")));
  auto stranger = inTerminal(lines[0].slice(secret.size() + 1))->wait(FAILS_WITHIN_S);
  CHECK(stranger.exitCode == 1);
  CHECK(contains(stranger.errors, "has a different secret than this role"));
  kj::Vector<kj::Own<Command>> roles;
  for (auto& line: lines) roles.add(inTerminal(line));
  auto ended = command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
}

TEST_CASE("manual: a missing secret or a wrong interface is refused before the run has a folder") {
  auto cache = cacheSetting();
  auto secret = kj::str("RUNNER_SECRET_FILE=", newSecretFile());
  auto refused = [&](kj::StringPtr setting, kj::StringPtr why, bool hasSecret) {
    auto runs = kj::str(newFolder(), "/runs");
    kj::StringPtr environment[] = {cache, hasSecret ? secret.asPtr() : cache.asPtr()};
    kj::StringPtr words[] = {
        RUNNER, "run", SHORT, "--runs", runs, "--set", MANUAL, "--set", setting};
    auto ended = Command(words, {.environment = environment}).wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 2);
    CHECK(contains(ended.errors, why));
    CHECK(::access(runs.cStr(), F_OK) != 0);
  };
  constexpr kj::StringPtr FOREIGN = "cluster.interface=203.0.113.77"_kj;
  refused(FOREIGN, "other machines reach 203.0.113.77, so the roles need a secret", false);
  refused(FOREIGN, "cluster.interface: this machine does not have the address 203.0.113.77", true);
  refused("cluster.interface=nothing0", "this machine has no interface `nothing0`", true);
  refused("cluster.tls=true", "TLS takes its keys from the job's secret", false);
}

TEST_CASE("manual: the first failure of a role ends the run, and the message names it") {
  Run run(SHORT, kj::arr(MANUAL, "train.optimizer.learning_rate=1e38"_kj));
  kj::Vector<kj::Own<Command>> roles;
  for (auto& line: commandsOf(run, "worker --index 1")) roles.add(inTerminal(line));
  auto ended = run.command.wait();
  checkFailed(ended, {"worker ", "loss"});
  checkRecorded(run, ended);
  for (auto& role: roles) CHECK(role->wait(FAILS_WITHIN_S).exitCode != 0);
}

TEST_CASE("manual: roles that never join are named, and Ctrl-C ends those that have joined") {
  constexpr kj::StringPtr IMPATIENT = "tests/faults/impatient.toml"_kj;
  {
    Run run(IMPATIENT, kj::arr(MANUAL));
    auto server = inTerminal(commandsOf(run, "worker --index 1")[1]);
    checkFailed(run.command.wait(), {"not joined within 3 s: server 0, worker 0, worker 1;"});
    CHECK(server->wait(FAILS_WITHIN_S).exitCode == 75);
  }
  Run run(ENDLESS, kj::arr(MANUAL));
  auto server = inTerminal(commandsOf(run, "worker --index 1")[0]);
  REQUIRE(server->waitForErrors("server 0 joined the job"));
  run.command.killGroup(SIGINT);
  CHECK(run.command.wait(FAILS_WITHIN_S).exitCode == 130);
  auto ended = server->wait(FAILS_WITHIN_S);
  CHECK(ended.exitCode == 75);
  CHECK(contains(ended.errors, " is gone"));
}

}  // namespace
}  // namespace tests
