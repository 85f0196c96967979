#include "configs/language/random.h"

#include <doctest/doctest.h>

namespace configs {
namespace {

// The expected words come from a second implementation in Python, on its unbounded integers.
TEST_CASE("Random: gives SplitMix64's numbers, seeded by a hash of seed, purpose and place") {
  Random random(1, Purpose::ORDER, 2, 3);
  CHECK(random.next() == 0x1511b4ef5b332431ull);
  CHECK(random.next() == 0xc55feb1f32d956eeull);
  CHECK(random.next() == 0x6d41b30c9f2fe1fbull);
  CHECK(Random(0, Purpose::INITIAL_VALUES).next() == 0x861139fbcd869b2aull);
}

TEST_CASE("Random: below() and uniform() use the upper bits of a number") {
  Random random(1, Purpose::ORDER, 2, 3);
  CHECK(random.below(10) == 0);
  CHECK(random.below(10) == 7);
  CHECK(random.below(10) == 4);
  Random again(1, Purpose::ORDER, 2, 3);
  CHECK(again.uniform() == 0.08230143397959155);
  CHECK(again.uniform() == 0.7709948493164565);
}

TEST_CASE("Random: another seed, purpose or place gives other numbers") {
  uint64_t first[] = {Random(1, Purpose::CROP, 2, 3).next(), Random(2, Purpose::CROP, 2, 3).next(),
      Random(1, Purpose::MIRROR, 2, 3).next(), Random(1, Purpose::CROP, 3, 3).next(),
      Random(1, Purpose::CROP, 2, 4).next(), Random(1, Purpose::CROP, 3, 2).next()};
  for (auto& a: first) {
    for (auto& b: first) CHECK((a == b) == (&a == &b));
  }
}

TEST_CASE("Random: below(n) returns every value about equally often, and never n") {
  int counts[7] = {};
  for (uint64_t place = 0; place < 70000; ++place) {
    uint32_t value = Random(5, Purpose::CROP, place).below(7);
    REQUIRE(value < 7);
    ++counts[value];
  }
  // Six standard deviations of a count with mean 10,000.
  for (int count: counts) CHECK(std::abs(count - 10000) < 560);
  CHECK(Random(5, Purpose::CROP).below(1) == 0);
}

TEST_CASE("Random: normal() has mean 0, variance 1 and tails") {
  Random random(7, Purpose::INITIAL_VALUES);
  constexpr int DRAWS = 100000;
  double sum = 0, squares = 0;
  int beyondTwo = 0;
  for (int i = 0; i < DRAWS; ++i) {
    double value = random.normal();
    REQUIRE(std::isfinite(value));
    sum += value;
    squares += value * value;
    beyondTwo += std::abs(value) > 2;
  }
  // Five standard deviations each; P(|x| > 2) = 0.0455.
  CHECK(std::abs(sum / DRAWS) < 0.016);
  CHECK(std::abs(squares / DRAWS - 1) < 0.023);
  CHECK(std::abs(double(beyondTwo) / DRAWS - 0.0455) < 0.0033);
}

}  // namespace
}  // namespace configs
