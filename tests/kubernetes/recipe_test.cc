// The recipe for Kubernetes in docs/clusters.md, run unchanged, with a kubectl that stores its
// input.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/command.h"
#include "tests/recipe.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr EXPERIMENT = R"(name = "x"
[data]
dataset = "fashion_mnist"
[model]
network = "mlp"
[train]
optimizer = { kind = "sgd", learning_rate = 0.01 }
[kvstore]
mode = "dist_sync"
)"_kj;

constexpr kj::StringPtr KUBECTL = R"sh(#!/bin/sh
echo "$*" >> calls
case $1 in create | apply) cat > "$1.stdin" ;; esac
)sh"_kj;

TEST_CASE("kubernetes: the recipe passes kubectl a new secret and the manifest of the file") {
  auto keys = recipe("Kubernetes", "[cluster.kubernetes]");
  auto commands = recipe("Kubernetes", "kubectl create secret");
  char here[4096];
  KJ_REQUIRE(::getcwd(here, sizeof(here)) != nullptr);
  auto folder = newFolder();
  writeFile(kj::str(folder, "/x.toml"), kj::str(EXPERIMENT, keys));
  writeFile(kj::str(folder, "/kubectl"), KUBECTL);
  KJ_SYSCALL(::chmod(kj::str(folder, "/kubectl").cStr(), 0755));
  auto path =
      kj::str("PATH=", folder, ":", static_cast<const char*>(here), "/runner:", ::getenv("PATH"));
  kj::StringPtr environment[] = {path};
  auto shell = [&](kj::StringPtr line) {
    kj::StringPtr words[] = {"sh", "-ec", line};
    auto ended = Command(words, {.folder = folder, .environment = environment}).wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    return kj::mv(ended.output);
  };
  shell(commands);
  CHECK(readFile(kj::str(folder, "/calls")) ==
        "create secret generic runner-secret --from-file=secret=/dev/stdin\n"
        "apply -f -\n"
        "logs --follow job/x-coordinator\n");
  CHECK(readFile(kj::str(folder, "/create.stdin")).size() == 64 + 1);
  auto manifest = shell("runner run x.toml --dry-run");
  CHECK(contains(manifest, "  name: x-coordinator\n"));
  CHECK(contains(manifest, "            secretName: runner-secret\n"));
  CHECK(readFile(kj::str(folder, "/apply.stdin")) == manifest);
}

TEST_CASE("kubernetes: the Dockerfile puts the folder of the packed programs on the path") {
  auto file = readFile("tools/Dockerfile");
  // tools/dist.sh packs everything below runner/.
  CHECK(contains(file, "\nADD runner.tar.gz /opt\n"));
  CHECK(contains(file, "\nENV PATH=/opt/runner:$PATH\n"));
  auto listed = Command({"tar", "-tzf", "runner/runner.tar.gz"}).wait();
  CHECK(contains(listed.output, "\nrunner/runner\n"));
}

}  // namespace
}  // namespace tests
