// Launcher manual over several hosts: see docs/clusters.md.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include "tests/faults/failure.h"
#include "tests/faults/roles_by_hand.h"
#include "tests/hosts/conditions.h"
#include "tests/recipe.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr kj::StringPtr SETTINGS[] = {"cluster.servers=1"_kj};

// `runner run` on host 0, and a server and two workers on separate hosts, with the same file.
struct Terminals {
  Terminals(const Hosts& hosts, kj::ArrayPtr<const kj::StringPtr> settings)
      : hosts(hosts), settings(settings) {}

  // Starts number `i`: `runner run`, the server, and the workers.
  void open(uint i) {
    kj::Vector<kj::StringPtr> words;
    auto place = kj::str(hosts.address(0), ":7000");
    if (i == 0) {
      words.addAll(std::initializer_list<kj::StringPtr>{RUNNER, "run", SHORT, "--runs", runs,
          "--set", "cluster.launcher=manual", "--set", "cluster.port=\"7000\"", "--set",
          "cluster.hosts=[\"h2\", \"h3\", \"h4\"]"});
    } else {
      words.addAll(std::initializer_list<kj::StringPtr>{RUNNER, "role", SHORT, "--role",
          i == 1 ? "server" : "worker", "--index", i == 3 ? "1" : "0", "--coordinator", place});
    }
    for (auto setting: settings) {
      words.add("--set");
      words.add(setting);
    }
    auto cache = cacheSetting();
    kj::StringPtr environment[] = {cache, secret};
    opened[i] = hosts.start(i, words, environment);
    // Waits for this text, so that the next terminal is opened after this one: `waits for the
    // coordinator`, or `joined`.
    bool isOpen = i == 0 ? opened[i]->waitForOutput("--index 1 --coordinator ")
                         : opened[i]->waitForErrors(" ");
    KJ_REQUIRE(isOpen, opened[i]->errors());
  }

  const Hosts& hosts;
  const kj::ArrayPtr<const kj::StringPtr> settings;
  const kj::String runs = newFolder();
  const kj::String secret = kj::str("RUNNER_SECRET_FILE=", newSecretFile());
  kj::Own<Command> opened[4];
};

TEST_CASE("manual: six orders of starting the roles train the same weights as one machine") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  auto conditions = conditionsOf(SHORT, SETTINGS);
  Hosts hosts(4);
  constexpr uint ORDERS[][4] = {
      {0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 3, 0, 1}, {1, 3, 2, 0}, {3, 0, 1, 2}};
  for (size_t i: kj::indices(ORDERS)) {
    auto& order = ORDERS[i];
    auto& condition = conditions[i % conditions.size()];
    CAPTURE(i);
    CAPTURE(condition.name);
    hosts.setVariables(ODD_HOST, condition.hostVariables);
    Terminals terminals(hosts, condition.settings);
    for (uint terminal: order) terminals.open(terminal);
    auto ended = terminals.opened[0]->wait();
    INFO(ended.output, ended.errors);
    CHECK(ended.exitCode == 0);
    CHECK(contains(ended.output, kj::str("weights sha256=", condition.weightsSha256)));
    CHECK(contains(ended.output, "on h2:\n"));
    CHECK(contains(ended.output, " --role worker --index 1 --coordinator 10.77.0.1:7000\n"));
    for (uint terminal: {1, 2, 3}) {
      auto role = terminals.opened[terminal]->wait(FAILS_WITHIN_S);
      INFO(role.errors);
      CHECK(role.exitCode == 0);
      CHECK(contains(role.errors, "the job is done\n"));
    }
  }
  for (uint i = 0; i < 4; i++) CHECK(hosts.processes(i).size() == 0);
}

TEST_CASE("manual: the recipe runs as it is written, and each printed line on its host") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  auto alone = train(SHORT, SETTINGS);
  Hosts hosts(3);
  auto folder = newFolder();
  writeFile(kj::str(folder, "/x.toml"), readFile(kj::str(alone.folder, "/experiment.toml")));
  auto path = pathSetting();
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache, path};
  auto inTerminal = [&](uint host, kj::StringPtr lines) {
    auto script = kj::str("cd ", folder, "; ", lines);
    return hosts.start(host, {"sh", "-ec", script}, environment);
  };
  auto secret = recipe("The secret", "openssl rand");
  CHECK(inTerminal(0, secret)->wait().exitCode == 0);
  auto launcher =
      inTerminal(0, withHosts(recipe("Terminals", "cluster.launcher=manual"), "h2", "h3"));
  REQUIRE_MESSAGE(launcher->waitForOutput("worker --index 1 --coordinator "), launcher->errors());
  kj::Vector<kj::Own<Command>> roles;
  uint host = 0;
  for (auto& line: linesOf(launcher->output())) {
    if (line == "on h2:") host = 1;
    if (line == "on h3:") host = 2;
    if (contains(line, "runner role ")) roles.add(inTerminal(host, line));
  }
  CHECK(host == 2);
  CHECK(roles.size() == 3);
  auto ended = launcher->wait();
  INFO(ended.output, ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, kj::str("weights sha256=", alone.weightsSha256)));
  for (auto& role: roles) CHECK(role->wait(FAILS_WITHIN_S).exitCode == 0);
}

}  // namespace
}  // namespace tests
