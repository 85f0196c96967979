#include "nn/lifetimes.h"

#include <kj/vector.h>

#include <algorithm>

namespace nn {

namespace {

// Inserts `tenant` after all tenants that have its offset or a lower one.
void insert(kj::Vector<Tenant*>& placed, Tenant* tenant) {
  auto behind = std::upper_bound(
      placed.begin(), placed.end(), tenant, [](auto* a, auto* b) { return a->offset < b->offset; });
  size_t at = behind - placed.begin();
  placed.add(tenant);
  std::rotate(placed.begin() + at, placed.end() - 1, placed.end());
}

}  // namespace

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
    insert(placed, tenant);
  }
  return total;
}

}  // namespace nn
