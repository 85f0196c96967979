// Launcher kubernetes: the pods of its manifest, each on a host with the files, variables and names
// that Kubernetes gives it.
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

kj::String unquoted(kj::StringPtr value) {
  if (!value.startsWith("\"")) return kj::str(value);
  kj::Vector<char> result;
  for (size_t i = 1; i + 1 < value.size(); i++) {
    if (value[i] == '\\') i++;
    result.add(value[i]);
  }
  return kj::heapString(result);
}

// The lines of the manifest's document that has the line `mark`.
kj::Vector<kj::String> documentWith(kj::StringPtr manifest, kj::StringPtr mark) {
  kj::Vector<kj::String> lines;
  bool isIt = false;
  for (auto& line: linesOf(manifest)) {
    if (line == "---") {
      if (isIt) break;
      lines = {};
      continue;
    }
    isIt = isIt || line == mark;
    lines.add(kj::mv(line));
  }
  KJ_REQUIRE(isIt, mark);
  return lines;
}

// The container of a Job in the manifest.
struct Container {
  Container(kj::StringPtr manifest, kj::StringPtr job) {
    constexpr kj::StringPtr WORD = "            - "_kj, NAME = "            - name: "_kj,
                            VALUE = "              value: "_kj;
    kj::String section, name;
    for (auto& line: documentWith(manifest, kj::str("  name: ", job))) {
      if (line.startsWith("          ") && line[10] != ' ') section = kj::str(line.slice(10));
      if (section == "command:" && line.startsWith(WORD)) {
        command.add(unquoted(line.slice(WORD.size())));
      }
      if (section != "env:") continue;
      if (line.startsWith(NAME)) name = kj::str(line.slice(NAME.size()));
      if (line.startsWith(VALUE)) {
        environment.add(kj::str(name, "=", unquoted(line.slice(VALUE.size()))));
      }
    }
    KJ_REQUIRE(command.size() > 0 && environment.size() > 0, job);
  }

  kj::Vector<kj::String> command;
  kj::Vector<kj::String> environment;
};

// The files that kubelet mounts into a pod: the files of a volume are links into a folder that a
// link names. $1: the experiment, $2: the secret, $3: the volume for runs.
constexpr kj::StringPtr VOLUMES = R"sh(
set -e
cd /run
mkdir -p runner/experiment/..1 runner/secret/..1 runner/cache runner/runs
cp "$1" runner/experiment/..1/experiment.toml
install -m 0400 -o 0 -g 0 "$2" runner/secret/..1/secret
for volume in experiment secret; do ln -sn ..1 runner/$volume/..data; done
ln -s ..data/experiment.toml runner/experiment/experiment.toml
ln -s ..data/secret runner/secret/secret
mount --bind "$3" runner/runs
)sh"_kj;

// Trains in the pods of the manifest for these settings. One of them is ODD_HOST.
void checkPods(const Condition& condition) {
  kj::Vector<kj::StringPtr> words;
  words.addAll(std::initializer_list<kj::StringPtr>{RUNNER, "run", SHORT, "--dry-run", "--set",
      "cluster.launcher=kubernetes", "--set", "cluster.image=runner:1", "--set",
      "cluster.kubernetes={ runs = \"runs\" }"});
  for (auto setting: condition.settings) {
    words.add("--set");
    words.add(setting);
  }
  auto manifest = Command(words).wait().output;
  constexpr kj::StringPtr INDENT = "    "_kj;
  kj::Vector<kj::String> experiment;
  bool isInside = false;
  for (auto& line: documentWith(manifest, "kind: ConfigMap")) {
    if (isInside)
      experiment.add(kj::str(line.size() == 0 ? line : line.slice(INDENT.size()), "\n"));
    isInside = isInside || line == "  experiment.toml: |";
  }
  auto folder = newFolder();
  auto file = kj::str(folder, "/experiment.toml");
  writeFile(file, kj::strArray(experiment, ""));
  auto secret = newSecretFile();
  auto runs = newFolder();

  Hosts hosts(4);
  hosts.setVariables(ODD_HOST, condition.hostVariables);
  // The name and the index of the Job whose pod each host runs.
  struct {
    kj::StringPtr job;
    kj::StringPtr index;
  } constexpr PODS[] = {{"short-coordinator"_kj, "0"_kj}, {"short-server"_kj, "0"_kj},
      {"short-worker"_kj, "0"_kj}, {"short-worker"_kj, "1"_kj}};
  auto path = pathSetting();
  kj::Own<Command> pods[4];
  auto begin = [&](uint host) {
    auto& pod = PODS[host];
    auto prepared = hosts.start(host, {"bash", "-c", VOLUMES, "bash", file, secret, runs})->wait();
    KJ_REQUIRE(prepared.exitCode == 0, prepared.errors);
    Container container(manifest, pod.job);
    kj::Vector<kj::StringPtr> words, environment;
    words.addAll(
        std::initializer_list<kj::StringPtr>{"sh", "-c", "cd /run/runner && exec \"$@\"", "sh"});
    auto address = hosts.address(host);
    for (auto& word: container.command) {
      words.add(word == "$(POD_IP)" ? address.asPtr() : word.asPtr());
    }
    for (auto& each: container.environment) environment.add(each);
    auto index = kj::str("JOB_COMPLETION_INDEX=", pod.index);
    environment.add(index);
    environment.add(path);
    pods[host] = hosts.start(host, words, environment);
  };
  // The coordinator's pod is the last one. Its name is unknown until it has an address.
  for (uint host: {3, 2, 1}) {
    begin(host);
    KJ_REQUIRE(pods[host]->waitForErrors("waits for the coordinator at "
                                         "short-coordinator-0.short:7000"),
        pods[host]->errors());
  }
  for (uint host = 0; host < 4; host++) {
    hosts.shell(
        host, kj::str("echo '", hosts.address(0), " short-coordinator-0.short' >> /run/hosts"));
  }
  begin(0);
  auto ended = pods[0]->wait();
  INFO(ended.output, ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, kj::str("weights sha256=", condition.weightsSha256)));
  for (uint host: {1, 2, 3}) {
    auto role = pods[host]->wait(FAILS_WITHIN_S);
    INFO(role.errors);
    CHECK(role.exitCode == 0);
  }
  // The folder of the run is in the volume.
  CHECK(readFile(kj::str(runs, "/short/1/weights.safetensors")).size() > 0);
  for (uint host = 0; host < 4; host++) CHECK(hosts.processes(host).size() == 0);
}

TEST_CASE("kubernetes: the pods of the manifest train the same weights as one machine") {
  KJ_IF_MAYBE(why, Hosts::whyNot()) SKIP_CASE(why->cStr());
  constexpr kj::StringPtr SETTINGS[] = {"cluster.servers=1"_kj};
  for (auto& condition: conditionsOf(SHORT, SETTINGS)) {
    CAPTURE(condition.name);
    checkPods(condition);
  }
}

}  // namespace
}  // namespace tests
