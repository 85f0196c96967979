#include "runner/experiment/step_traffic.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "runner/experiment/model_facts.h"

namespace runner {
namespace {

StepTraffic trafficOf(kj::ArrayPtr<const kj::StringPtr> overrides) {
  auto loaded = loadExperiment("configs/cifar10_dist_sync.toml", overrides);
  CAPTURE(loaded.errors.cStr());
  REQUIRE(loaded.experiment != nullptr);
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  return stepTraffic(experiment, placementOf(experiment, ModelFacts(experiment).graph));
}

constexpr double MODEL_BYTES = 4.0 * 1652826;

TEST_CASE("stepTraffic: each of four hosts sends 3 of 4 shares as a worker and as a server") {
  kj::StringPtr four[] = {"cluster.workers=4", "cluster.servers=4"};
  auto traffic = trafficOf(four);
  CHECK(traffic.pushed_bytes == MODEL_BYTES);
  CHECK(traffic.answered_bytes == MODEL_BYTES);
  CHECK(traffic.shardIn_bytes == doctest::Approx(MODEL_BYTES).epsilon(0.01));
  CHECK(traffic.shardOut_bytes == traffic.shardIn_bytes);
  CHECK(traffic.link_bytes == doctest::Approx(1.5 * MODEL_BYTES).epsilon(0.01));
}

TEST_CASE("stepTraffic: a server without a worker beside it has the busiest link") {
  kj::StringPtr one[] = {"cluster.workers=3", "cluster.servers=1"};
  CHECK(trafficOf(one).link_bytes == 2 * MODEL_BYTES);
  kj::StringPtr alone[] = {"cluster.workers=1", "cluster.servers=1"};
  CHECK(trafficOf(alone).link_bytes == 0);
}

TEST_CASE("stepTraffic: compression affects both directions only if workers update") {
  kj::StringPtr halves[] = {"kvstore.wire=float16"};
  CHECK(trafficOf(halves).pushed_bytes == MODEL_BYTES / 2);
  kj::StringPtr onServers[] = {"kvstore.compression={ kind = \"2bit\" }"};
  auto traffic = trafficOf(onServers);
  CHECK(traffic.pushed_bytes == doctest::Approx(MODEL_BYTES / 16).epsilon(0.01));
  CHECK(traffic.answered_bytes == MODEL_BYTES);
  kj::StringPtr onWorkers[] = {
      "kvstore.compression={ kind = \"topk\", sparsity = 0.99 }", "kvstore.update=worker"};
  traffic = trafficOf(onWorkers);
  // A value and its position take 5 bytes. Of the sums of two workers, at most 1.99 % are not 0.
  CHECK(traffic.pushed_bytes == doctest::Approx(MODEL_BYTES * 0.01 * 5 / 4).epsilon(0.12));
  CHECK(traffic.answered_bytes == doctest::Approx(MODEL_BYTES * 0.0199 * 5 / 4).epsilon(0.12));
}

TEST_CASE("network_ms: counts the bytes of whole frames, and adds the overhead") {
  StepTraffic traffic{};
  traffic.link_bytes = 1448e3;
  CHECK(network_ms(traffic, {.mbit = 1000}) == doctest::Approx(12.112));
  CHECK(network_ms(traffic, {.mbit = 100, .overhead_ms = 5}) == doctest::Approx(126.12));
}

}  // namespace
}  // namespace runner
