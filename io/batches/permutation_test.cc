#include "io/batches/permutation.h"

#include <doctest/doctest.h>
#include <kj/array.h>

#include <cmath>

namespace io {

TEST_CASE("Permutation: has every number once") {
  for (uint64_t n: {1, 2, 3, 4, 5, 31, 32, 33, 1000, 4096, 4097, 100000}) {
    CAPTURE(n);
    Permutation permutation(n, 1, 2, 3);
    auto count = kj::heapArray<int>(n);
    for (auto& each: count) each = 0;
    for (uint64_t i = 0; i < n; ++i) ++count[permutation.at(i)];
    for (auto& each: count) REQUIRE(each == 1);
  }
}

TEST_CASE("Permutation: depends on the seed and on both numbers after it") {
  auto same = [](Permutation a, Permutation b) {
    for (uint64_t i = 0; i < 100; ++i) {
      if (a.at(i) != b.at(i)) return false;
    }
    return true;
  };
  CHECK(same({1000, 1, 2, 3}, {1000, 1, 2, 3}));
  CHECK_FALSE(same({1000, 1, 2, 3}, {1000, 2, 2, 3}));
  CHECK_FALSE(same({1000, 1, 2, 3}, {1000, 1, 3, 3}));
  CHECK_FALSE(same({1000, 1, 2, 3}, {1000, 1, 2, 4}));
}

TEST_CASE("Permutation: every number is at every place about equally often") {
  // How often number y is at place x, over many permutations.
  constexpr uint64_t N = 12, COUNT = 24000;
  int counts[N][N] = {};
  for (uint64_t pass = 0; pass < COUNT; ++pass) {
    Permutation permutation(N, 5, pass, 0);
    for (uint64_t x = 0; x < N; ++x) ++counts[x][permutation.at(x)];
  }
  // Chi-squared with (N-1)² = 121 degrees of freedom: above 173 once in a thousand.
  double chiSquared = 0, expected = double(COUNT) / N;
  for (auto& row: counts) {
    for (int count: row) chiSquared += (count - expected) * (count - expected) / expected;
  }
  CHECK(chiSquared < 173);
}

TEST_CASE("Permutation: the numbers at neighbouring places are not correlated") {
  constexpr uint64_t N = 1 << 20, COUNT = 100000;
  Permutation permutation(N, 7, 0, 0);
  double product = 0;
  for (uint64_t i = 0; i + 1 < COUNT; ++i) {
    product += (double(permutation.at(i)) / N - 0.5) * (double(permutation.at(i + 1)) / N - 0.5);
  }
  // The variance of a uniform number is 1/12, so this is a correlation. Its deviation is 0.003.
  CHECK(std::abs(product / COUNT * 12) < 0.013);
}

}  // namespace io
