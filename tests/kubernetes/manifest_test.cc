// The manifest that launcher kubernetes prints.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/command.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr RUNNER = "runner/runner"_kj;
constexpr kj::StringPtr JOB = "tests/kubernetes/job.toml"_kj;

Ended dryRun(kj::ArrayPtr<const kj::StringPtr> settings = nullptr) {
  kj::Vector<kj::StringPtr> words;
  words.addAll(kj::ArrayPtr<const kj::StringPtr>({RUNNER, "run", JOB, "--dry-run"}));
  for (auto setting: settings) {
    words.add("--set");
    words.add(setting);
  }
  return Command(words).wait();
}

TEST_CASE("kubernetes: --dry-run prints the manifest in job.yaml, and starts and imports nothing") {
  auto cache = newFolder();
  auto setting = kj::str("RUNNER_CACHE=", cache);
  kj::StringPtr environment[] = {setting};
  kj::StringPtr words[] = {RUNNER, "run", JOB, "--dry-run"};
  auto ended = Command(words, {.environment = environment}).wait();
  CHECK(ended.exitCode == 0);
  CHECK(ended.errors == "");
  CHECK(ended.output == readFile("tests/kubernetes/job.yaml"));
  CHECK(::rmdir(cache.cStr()) == 0);
}

TEST_CASE("--dry-run refuses options that would have no effect on its output") {
  auto none = kj::str(newFolder(), "/none");
  auto folder = kj::str("--folder=", none), runs = kj::str("--runs=", none);
  for (kj::StringPtr option: {"--resume"_kj, "--detach"_kj, folder.asPtr(), runs.asPtr()}) {
    CAPTURE(option);
    auto ended = Command({RUNNER, "run", JOB, "--dry-run", option}).wait();
    CHECK(ended.exitCode == 2);
    CHECK(contains(ended.errors, "--dry-run only prints what would be handed over, without --"));
  }
}

TEST_CASE("kubernetes: workers on GPUs ask for GPUs, and cluster.port is the coordinator's port") {
  auto output = dryRun({"cluster.devices=[\"cuda:0\", \"cuda:1\"]", "cluster.port=\"7100-7131\"",
                           "cluster.hosts=[\"a slots=1\", \"b slots=1\"]"})
                    .output;
  CHECK(countOf(output, "nvidia.com/gpu: \"2\"\n") == 1);
  CHECK(contains(output, "two-workers-v1-coordinator-0.two-workers-v1:7100\""));
  CHECK(contains(output, "port: 7100\n"));
  CHECK_FALSE(contains(output, "7000"));
}

TEST_CASE("kubernetes: servers that share a process share a pod") {
  auto output = dryRun({"cluster.servers=5", "cluster.servers_per_process=2"}).output;
  CHECK(countOf(output, "completions: 3\n") == 1);
  // The last workers, and each pod of servers.
  CHECK(countOf(output, "cpu: \"4\"\n") == 1);
  CHECK(countOf(output, "cpu: \"2\"\n") == 1);
}

TEST_CASE("kubernetes: long names with the same beginning give objects different names") {
  auto begin = kj::str(kj::repeat('a', 60));
  auto nameIn = [&](kj::StringPtr end) {
    auto output = dryRun({kj::str("name=", begin, end)}).output;
    auto from = KJ_ASSERT_NONNULL(output.findFirst('\n'));
    kj::StringPtr rest = output.slice(from);
    constexpr kj::StringPtr NAME = "\n  name: "_kj;
    auto at = ::strstr(rest.cStr(), NAME.cStr()) + NAME.size();
    return kj::heapString(at, ::strchr(at, '\n') - at);
  };
  auto first = nameIn("1"), second = nameIn("2");
  CHECK(first.size() <= 42);  // in quotes, or without
  CHECK(first != second);
  CHECK(first == nameIn("1"));
}

TEST_CASE("kubernetes: a folder in data.source is where the pods see the data") {
  auto output = dryRun({"data.source=/mnt/images"}).output;
  CHECK(countOf(output, "mountPath: /mnt/images\n") == 3);
  CHECK_FALSE(contains(output, "RUNNER_DATASETS"));
}

TEST_CASE("kubernetes: without --dry-run, runner run prints the commands to use") {
  auto ended = Command({RUNNER, "run", JOB}).wait();
  CHECK(ended.exitCode == 2);
  CHECK(ended.output == "");
  for (auto line: {"error: launcher `kubernetes` starts nothing by itself. "_kj,
           "  openssl rand -hex 32 | kubectl create secret generic runner-secret "
           "--from-file=secret=/dev/stdin\n"_kj,
           "  runner run … --dry-run | kubectl apply -f -\n"_kj,
           "  kubectl logs --follow job/two-workers-v1-coordinator\n"_kj}) {
    CHECK(contains(ended.errors, line));
  }
  auto local = dryRun({"cluster.launcher=local"});
  CHECK(local.exitCode == 2);
  CHECK(contains(local.errors, "--dry-run needs cluster.launcher = \"kubernetes\""));
}

TEST_CASE("kubernetes: the manifest fits the official schemas") {
  // `pip install kubernetes-validate` has the schemas.
  auto python = ::getenv("RUNNER_PYTHON");
  kj::StringPtr program = python == nullptr ? "python3"_kj : kj::StringPtr(python);
  if (Command({program, "-m", "kubernetes_validate", "--version"}).wait().exitCode != 0) {
    SKIP_CASE("no Python with kubernetes-validate (RUNNER_PYTHON can name one)");
  }
  auto file = kj::str(newFolder(), "/job.yaml");
  auto check = [&](kj::StringPtr manifest) {
    writeFile(file, manifest);
    return Command({program, "-m", "kubernetes_validate", "--strict", file}).wait();
  };
  auto manifest = dryRun().output;
  auto ended = check(manifest);
  INFO(ended.output, ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(countOf(kj::str(ended.output, ended.errors), " passed for resource ") == 5);
  // The validator finds errors.
  CHECK(check(kj::str(manifest, "  wrongField: 1\n")).exitCode != 0);
}

}  // namespace
}  // namespace tests
