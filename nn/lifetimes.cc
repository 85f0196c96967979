#include "nn/lifetimes.h"

#include <kj/vector.h>

#include <algorithm>

namespace nn {

size_t pack(kj::ArrayPtr<Tenant* const> tenants, size_t alignment) {
  auto roundUp = [alignment](
                     size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  auto meet = [](const Tenant& a, const Tenant& b) {
    return a.first <= b.last && b.first <= a.last;
  };
  auto order = KJ_MAP(tenant, tenants) {
    return tenant;
  };
  std::stable_sort(order.begin(), order.end(), [](auto a, auto b) { return a->bytes > b->bytes; });

  size_t total = 0;
  kj::Vector<Tenant*> placed;  // by offset
  for (auto* tenant: order) {
    size_t size = roundUp(tenant->bytes);
    size_t offset = 0;
    for (auto* other: placed) {
      if (!meet(*tenant, *other)) continue;
      if (offset + size <= other->offset) break;
      offset = kj::max(offset, other->offset + roundUp(other->bytes));
    }
    tenant->offset = offset;
    total = kj::max(total, offset + size);
    placed.add(tenant);
    std::stable_sort(
        placed.begin(), placed.end(), [](auto a, auto b) { return a->offset < b->offset; });
  }
  return total;
}

}  // namespace nn
