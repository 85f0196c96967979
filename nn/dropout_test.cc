#include "nn/dropout.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

namespace nn {
namespace {

constexpr uint32_t ELEMENTS = 100000;

// Checks that the share of elements for which both return true lies within four deviations of
// `expected`. Seeds are fixed, so that nothing here changes from run to run.
template <typename First, typename Second>
void checkIndependent(double expected, First&& first, Second&& second) {
  uint32_t both = 0;
  for (uint32_t i = 0; i < ELEMENTS; ++i) both += first(i) && second(i);
  double deviation = std::sqrt(expected * (1 - expected) / ELEMENTS);
  CHECK(std::abs(double(both) / ELEMENTS - expected) < 4 * deviation);
}

TEST_CASE("Dropout: drops elements at its rate, and scales the others up") {
  for (double rate: {0.0, 0.01, 0.25, 0.5, 0.9}) {
    for (uint64_t draw: {0, 1, 77}) {
      auto mask = dropoutMask(rate, draw, 3);
      CHECK(mask.scale == doctest::Approx(1 / (1 - rate)));
      auto isGone = [&](uint32_t i) { return isDropped(mask, i); };
      // A rate of 0 drops nothing. 1e-12 keeps the allowed deviation above 0.
      checkIndependent(rate == 0 ? 1e-12 : rate, isGone, isGone);
    }
  }
}

TEST_CASE("Dropout: masks of neighbouring rows, nodes and elements are independent") {
  for (double rate: {0.1, 0.5}) {
    auto mask = dropoutMask(rate, 1000, 3);
    auto isGone = [&](uint32_t i) { return isDropped(mask, i); };
    auto ofOther = [&](uint64_t draw, unsigned node) {
      return [other = dropoutMask(rate, draw, node)](uint32_t i) { return isDropped(other, i); };
    };
    checkIndependent(rate * rate, isGone, ofOther(1001, 3));
    checkIndependent(rate * rate, isGone, ofOther(1000, 4));
    checkIndependent(rate * rate, isGone, ofOther(3, 1000));
    for (uint32_t distance: {1, 2, 7, 16, 784}) {
      checkIndependent(
          rate * rate, isGone, [&](uint32_t i) { return isDropped(mask, i + distance); });
    }
  }
}

TEST_CASE("Dropout: the same row of the same node gets the same mask") {
  auto mask = dropoutMask(0.5, 1, 2), again = dropoutMask(0.5, 1, 2);
  for (uint32_t i = 0; i < 100; ++i) CHECK(isDropped(mask, i) == isDropped(again, i));
}

}  // namespace
}  // namespace nn
