#include "rpc/codec/top_k.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <math.h>

#include <algorithm>
#include <vector>

#include "rpc/testing/test_model.h"

namespace rpc::codec {
namespace {

// Sorts by magnitude, the largest first. Of equal magnitudes, the earlier one comes first.
std::vector<uint32_t> sorted(kj::ArrayPtr<const float> values, size_t k) {
  std::vector<uint32_t> all(values.size());
  for (size_t i = 0; i < all.size(); i++) all[i] = i;
  std::stable_sort(all.begin(), all.end(),
      [&](uint32_t a, uint32_t b) { return fabsf(values[a]) > fabsf(values[b]); });
  all.resize(k);
  std::sort(all.begin(), all.end());
  return all;
}

TEST_CASE("TopK: finds exactly the k largest, and of equal ones the first") {
  TopK top;
  for (size_t size: {1, 2, 31, 64, 1000, 20000}) {
    for (int levels: {1, 2, 50, 1 << 22}) {
      auto values = kj::heapArray<float>(size);
      for (auto i: kj::indices(values)) values[i] = roundf(levels * noise(size, i, levels));
      for (double share: {0.0, 0.001, 0.01, 0.1, 0.25, 0.9, 1.0}) {
        size_t k = kj::min(size, size_t(1 + share * size));
        CAPTURE(size);
        CAPTURE(levels);
        CAPTURE(k);
        auto found = top.find(values, k);
        auto expected = sorted(values, k);
        REQUIRE(found == kj::arrayPtr(expected.data(), expected.size()));
      }
    }
  }
}

TEST_CASE("TopK: a NaN counts as larger than all numbers") {
  TopK top;
  float values[] = {1, INFINITY, 3, NAN, 2};
  auto found = top.find(kj::arrayPtr(values, 5), 2);
  CHECK(found[0] == 1);
  CHECK(found[1] == 3);
}

}  // namespace
}  // namespace rpc::codec
