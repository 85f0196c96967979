#include "runner/roles/disk_room.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

TEST_CASE("neededRoom: counts the weights as float32, and the lines of every worker") {
  kj::StringPtr overrides[] = {"cluster.workers=2", "log.every=100"};
  auto loaded = loadExperiment("configs/fashion_mnist_dist_sync.toml", overrides);
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  ModelFacts facts(experiment);
  auto needed = neededRoom(experiment, facts);
  uint64_t values = facts.graph.parameters + facts.graph.statisticsSize;
  CHECK(needed.weights_bytes > 4 * values);
  CHECK(needed.weights_bytes < 4 * values + 64 * 1024);
  uint64_t lines = 2 * facts.stepsUntilEndOf(1, experiment) / 100;
  CHECK(needed.logs_bytes > lines * 1024);
  CHECK(needed.logs_bytes < lines * 1024 + 64 * 1024);
}

TEST_CASE("whyNoRoom: compares the needed room with that of the disk, and says what to do") {
  RunFolder folder{tests::newFolder()};
  CHECK(whyNoRoom(folder, {1, 1}) == nullptr);
  auto why = KJ_ASSERT_NONNULL(whyNoRoom(folder, {1ull << 62, 2048}));
  CHECK(contains(why, kj::str("not enough room on the disk of ", folder.path, ": ")));
  CHECK(contains(why, "the weights need 4294967296.0 GiB and the logs of an epoch about 2.0 KiB"));
  CHECK(contains(why, "free some space, or choose another folder with --runs"));
  auto atTheEnd = KJ_ASSERT_NONNULL(whyNoRoom(folder, {1ull << 62, 0}));
  CHECK(contains(atTheEnd, "the weights need 4294967296.0 GiB; free some space"));
}

TEST_CASE("whyNoRoom: is null if the file system does not report its free space") {
  CHECK(whyNoRoom({kj::str("/proc")}, {1ull << 62, 0}) == nullptr);
}

}  // namespace
}  // namespace runner
