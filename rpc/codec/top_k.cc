#include "rpc/codec/top_k.h"

#include <kj/debug.h>

#include <algorithm>
#include <functional>

#include "rpc/codec/bits.h"
#include "rpc/codec/loops.h"

namespace rpc::codec {

namespace {

// There are at least this many times k groups. More groups would not improve the bound, and groups
// of fewer values cost more time.
constexpr size_t GROUPS_PER_VALUE = 2;

// Returns the k-th largest magnitude.
uint32_t kthLargest(kj::ArrayPtr<uint32_t> numbers, size_t k) {
  auto kth = numbers.begin() + (k - 1);
  std::nth_element(numbers.begin(), kth, numbers.end(), std::greater<uint32_t>());
  return *kth;
}

}  // namespace

kj::ArrayPtr<const uint32_t> TopK::find(kj::ArrayPtr<const float> values, size_t k) {
  size_t size = values.size();
  KJ_REQUIRE(k <= size && size <= uint32_t(kj::maxValue), k, size);
  if (k == 0) return nullptr;
  if (positions.size() < size) {
    positions = kj::heapArray<uint32_t>(size);
    magnitudes = kj::heapArray<uint32_t>(size);
  }
  size_t rows = 1;
  while (size / (2 * rows) >= GROUPS_PER_VALUE * k) rows *= 2;
  size_t groups = size / rows;
  loops().maxima(values.begin(), rows, groups, magnitudes.begin());
  uint32_t least = kthLargest(magnitudes.slice(0, groups), k);
  size_t found = loops().collect(values.begin(), size, least, positions.begin());
  if (found == k) return positions.slice(0, k);

  auto magnitudeAt = [&](uint32_t position) { return bitsOf(values[position]) & MAGNITUDE; };
  for (size_t i = 0; i < found; i++) magnitudes[i] = magnitudeAt(positions[i]);
  least = kthLargest(magnitudes.slice(0, found), k);
  size_t ties = k;
  for (size_t i = 0; i < k; i++) ties -= magnitudes[i] > least;
  size_t kept = 0;
  for (size_t i = 0; i < found && kept < k; i++) {
    uint32_t magnitude = magnitudeAt(positions[i]);
    if (magnitude < least || (magnitude == least && ties == 0)) continue;
    if (magnitude == least) ties--;
    positions[kept++] = positions[i];
  }
  return positions.slice(0, k);
}

}  // namespace rpc::codec
