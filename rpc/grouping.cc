#include "rpc/grouping.h"

#include <algorithm>

namespace rpc {

void forEachGroup(
    const Placement& placement, SliceRange range, kj::FunctionParam<void(const Group&)> visit) {
  for (auto shard: kj::indices(placement.shards)) {
    auto& ids = placement.shards[shard];
    auto next = std::lower_bound(ids.begin(), ids.end(), range.begin);
    auto end = std::lower_bound(next, ids.end(), range.end);
    while (next < end) {
      auto first = next;
      uint64_t bytes = 0;
      do {
        bytes += placement.slices[*next++].size * sizeof(float);
      } while (next < end && next - first < CALL_SLICES_MAX &&
               bytes + placement.slices[*next].size * sizeof(float) <= CALL_BYTES_MAX);
      visit(Group{uint(shard), kj::arrayPtr(first, next)});
    }
  }
}

}  // namespace rpc
