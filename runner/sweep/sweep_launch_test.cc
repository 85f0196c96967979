#include "runner/sweep/sweep_launch.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "runner/system/files.h"

namespace runner {
namespace {

LoadedRuns load(kj::StringPtr sweep) {
  auto path = kj::str(::getenv("TEST_TMPDIR"), "/x.toml");
  writeWhole(path, kj::str("name = \"x\"\n"
                           "[data]\n"
                           "dataset = \"fashion_mnist\"\n"
                           "[model]\n"
                           "network = \"mlp\"\n"
                           "[train]\n"
                           "optimizer = { kind = \"sgd\", learning_rate = 0.1 }\n"
                           "[kvstore]\n"
                           "mode = \"dist_sync\"\n"
                           "[cluster]\n"
                           "servers = 1\n"
                           "workers = 2\n"
                           "threads_per_worker = 2\n"
                           "[sweep]\n",
                       sweep));
  auto all = loadRuns(path, nullptr, nullptr);
  REQUIRE(all.errors == "");
  return all;
}

TEST_CASE("parallelRuns: as many runs as the cores can hold of the largest, at least one") {
  auto all = load("grid = { \"cluster.workers\" = [1, 3, 2] }\n");
  CHECK(parallelRuns(all, 1) == 1);
  CHECK(parallelRuns(all, 11) == 1);
  CHECK(parallelRuns(all, 12) == 2);
  CHECK(parallelRuns(all, 64) == 10);
}

TEST_CASE("parallelRuns: each device of a worker has its own threads") {
  auto all = load(
      "grid = { \"cluster.devices\" = [[\"cpu\"], [\"cpu:0\", \"cpu:1\"]] }\n"
      "zip = { \"data.batch_size\" = [128] }\n");
  CHECK(parallelRuns(all, 16) == 2);
}

TEST_CASE("parallelRuns: parallel_runs decides, whatever the cores can hold") {
  auto all = load("grid = { \"cluster.workers\" = [1, 2] }\nparallel_runs = 5\n");
  CHECK(parallelRuns(all, 1) == 5);
  CHECK(parallelRuns(all, 64) == 5);
}

}  // namespace
}  // namespace runner
