#include "rpc/modes/outer_updater.h"

#include <doctest/doctest.h>
#include <kj/array.h>

namespace rpc {
namespace {

// The value after each of three rounds of two workers whose values end 1 and 3 below those they
// began with: the mean difference is 2. All figures are exact in float32.
kj::Array<float> threeRounds(OuterConfig config) {
  OuterUpdater updater(config, 2);
  Slice slice{.key = 0, .offset = 0, .size = 1, .shard = 0};
  auto state = kj::heapArray<float>(updater.stateArrays(slice));
  for (auto& x: state) x = 0;
  auto values = kj::heapArray<float>(4);
  values[0] = 100;
  const float sum[] = {4};
  for (uint64_t round = 0; round < 3; round++) {
    updater.update(slice, {.number = round, .gradientSum = sum, .divisor = 2},
        values.slice(round, round + 1), values.slice(round + 1, round + 2), state);
  }
  return values;
}

TEST_CASE("average: the values become the mean of the workers', without state") {
  auto values = threeRounds({OuterConfig::AVERAGE, 1, 0.0});
  CHECK(values[1] == 98);
  CHECK(values[2] == 96);
  CHECK(values[3] == 94);
  Slice slice{.key = 0, .offset = 0, .size = 1, .shard = 0};
  CHECK(OuterUpdater({OuterConfig::AVERAGE, 1, 0.0}, 2).stateArrays(slice) == 0);
}

TEST_CASE("block_momentum: the next change contains 1 - 1 / workers of the last one") {
  // Changes of 2, 2 + 2 / 2, 2 + 3 / 2.
  auto values = threeRounds({OuterConfig::BLOCK_MOMENTUM, 1, nullptr});
  CHECK(values[1] == 98);
  CHECK(values[2] == 95);
  CHECK(values[3] == 91.5f);
  // One worker alone has no momentum.
  CHECK(OuterConfig{OuterConfig::BLOCK_MOMENTUM, 1, nullptr}.momentumOf(1) == 0);
  CHECK(OuterConfig{OuterConfig::BLOCK_MOMENTUM, 1, nullptr}.momentumOf(4) == 0.75);
  CHECK(OuterConfig{OuterConfig::BLOCK_MOMENTUM, 1, 0.25}.momentumOf(4) == 0.25);
  // A run may continue with another number of workers, so the size of its state must not change.
  for (uint workers: {1, 2}) {
    OuterUpdater updater({OuterConfig::BLOCK_MOMENTUM, 1, nullptr}, workers);
    CHECK(updater.stateArrays(Slice{}) == 1);
  }
  // One worker alone updates its state, too. Otherwise an old direction would come back when a
  // second worker joins.
  OuterUpdater alone({OuterConfig::BLOCK_MOMENTUM, 1, nullptr}, 1);
  Slice slice{.key = 0, .offset = 0, .size = 1, .shard = 0};
  float current[] = {100}, next[] = {0}, state[] = {5}, sum[] = {2};
  alone.update(slice, {.gradientSum = sum, .divisor = 1}, current, next, state);
  CHECK(next[0] == 98);
  CHECK(state[0] == -2);
}

TEST_CASE("nesterov: each step uses the momentum that it has just updated") {
  // v = 2, 3, 3.5; steps (2 + v / 2) / 4.
  auto values = threeRounds({OuterConfig::NESTEROV, 0.25, 0.5});
  CHECK(values[1] == 100 - 0.75f);
  CHECK(values[2] == 100 - 0.75f - 0.875f);
  CHECK(values[3] == 100 - 0.75f - 0.875f - 0.9375f);
}

}  // namespace
}  // namespace rpc
