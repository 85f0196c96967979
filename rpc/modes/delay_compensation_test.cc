#include "rpc/modes/delay_compensation.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <math.h>

#include <cstring>

#include "rpc/testing/test_model.h"

namespace rpc {
namespace {

// Keeps the gradient that it gets. Counts its updates in its one array of state.
class KeepingUpdater final: public Updater {
public:
  uint stateArrays(const Slice&) const override { return 1; }

  void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) override {
    KJ_REQUIRE(state.size() == slice.size);
    gradient = kj::heapArray(round.gradientSum);
    number = round.number;
    divisor = round.divisor;
    for (uint64_t i = 0; i < slice.size; i++) {
      state[i]++;
      next[i] = current[i] - round.gradientSum[i];
    }
  }

  kj::Array<float> gradient;
  uint64_t number = 0;
  uint divisor = 0;
};

kj::Array<float> noises(uint64_t size, uint64_t what, uint64_t step) {
  auto values = kj::heapArray<float>(size);
  for (auto i: kj::indices(values)) values[i] = noise(what, i, step);
  return values;
}

bool same(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  return a.size() == b.size() && memcmp(a.begin(), b.begin(), a.asBytes().size()) == 0;
}

// The paper's formula, value by value.
float corrected(float sum, float images, float strength, float now, float seen) {
  float g = 1 / images * sum;
  return sum + strength * g * sum * (now - seen);
}

TEST_CASE("DelayCompensation: a known gradient is corrected by a known change") {
  auto owned = kj::heap<KeepingUpdater>();
  auto& inner = *owned;
  DelayCompensation compensation(kj::mv(owned), {.lambda = 0.5, .adaptive = false}, 2);
  Slice slice{.key = 0, .offset = 0, .size = 3, .shard = 0};
  CHECK(compensation.stateArrays(slice) == 1);
  // The batch has two images, so the mean gradients are 2, -1 and 0.
  float sum[] = {4, -2, 0}, current[] = {3, 3, 3}, seen[] = {1, 4, 0}, next[3], state[3] = {};
  compensation.update(slice, {7, sum, 1, 2, seen}, current, next, state);
  // Twice the mean's correction: g + 0.5 g² (w - seen) is 2 + 0.5·4·2 = 6, -1 + 0.5·1·(-1) = -1.5.
  float expected[] = {12, -3, 0};
  CHECK(same(inner.gradient, expected));
  CHECK(inner.number == 7);
  CHECK(inner.divisor == 1);
  CHECK(next[0] == 3 - 12);
  CHECK(state[2] == 1);
}

TEST_CASE("DelayCompensation: a gradient of unchanged values is passed on bit by bit") {
  auto owned = kj::heap<KeepingUpdater>();
  auto& inner = *owned;
  DelayCompensation compensation(kj::mv(owned), {.lambda = 2, .adaptive = true}, 64);
  Slice slice{.key = 0, .offset = 0, .size = 100, .shard = 0};
  auto sum = noises(100, 1, 0), current = noises(100, 2, 0);
  auto next = kj::heapArray<float>(100), state = kj::heapArray<float>(200);
  for (auto& value: state) value = 0;
  compensation.update(slice, {0, sum, 1, 0, current}, current, next, state);
  CHECK(same(inner.gradient, sum));
}

TEST_CASE("DelayCompensation: has the bits of a plain loop, with constant and adaptive strength") {
  constexpr uint64_t IMAGES = 64;
  for (bool adaptive: {false, true}) {
    CAPTURE(adaptive);
    auto owned = kj::heap<KeepingUpdater>();
    auto& inner = *owned;
    float lambda = adaptive ? 2 : 0.04f;
    DelayCompensation compensation(kj::mv(owned), {.lambda = lambda, .adaptive = adaptive}, IMAGES);
    // Slices of several sizes share the scratch array.
    for (uint64_t size: {1000, 1, 7, 1027}) {
      CAPTURE(size);
      Slice slice{.key = 0, .offset = 0, .size = size, .shard = 0};
      REQUIRE(compensation.stateArrays(slice) == (adaptive ? 2 : 1));
      auto state = kj::heapArray<float>(size * compensation.stateArrays(slice));
      auto meanSquare = kj::heapArray<float>(size), next = kj::heapArray<float>(size);
      for (auto& value: state) value = 0;
      for (auto& value: meanSquare) value = 0;
      for (uint64_t step = 0; step < 5; step++) {
        auto sum = noises(size, 1, step), current = noises(size, 2, step);
        auto seen = noises(size, 3, step);
        compensation.update(slice, {step, sum, 1, 3, seen}, current, next, state);
        for (uint64_t i = 0; i < size; i++) {
          float strength = lambda;
          if (adaptive) {
            float g = 1 / float(IMAGES) * sum[i];
            meanSquare[i] = 0.95f * meanSquare[i] + (1 - 0.95f) * g * g;
            strength = lambda / sqrtf(meanSquare[i] + 1e-7f);
          }
          float expected = corrected(sum[i], IMAGES, strength, current[i], seen[i]);
          REQUIRE(inner.gradient[i] == expected);
        }
      }
      // The inner updater's state precedes the mean squares.
      CHECK(state[0] == 5);
      if (adaptive) CHECK(same(state.slice(size, 2 * size), meanSquare));
    }
  }
}

TEST_CASE("DelayCompensation: throws without the values that were seen") {
  DelayCompensation compensation(kj::heap<KeepingUpdater>(), {.lambda = 2, .adaptive = false}, 1);
  Slice slice{.key = 0, .offset = 0, .size = 1, .shard = 0};
  float sum[] = {1}, current[] = {1}, next[1], state[1] = {};
  CHECK_THROWS(compensation.update(slice, {0, sum}, current, next, state));
}

}  // namespace
}  // namespace rpc
