// nn/lifetimes.h: packs pieces of memory whose lifetimes are known beforehand into one block.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <stddef.h>

namespace nn {

using kj::uint;

// Bytes that are used from one moment to another. The caller decides what a moment is.
struct Tenant {
  size_t bytes = 0;
  uint first = kj::maxValue;  // after `last`: never used
  uint last = 0;
  size_t offset = 0;  // from the start of the block; set by pack()

  void use(uint moment) {
    first = kj::min(first, moment);
    last = kj::max(last, moment);
  }
  void keep() {
    first = 0;
    last = kj::maxValue;
  }
};

// Sets the offsets, multiples of `alignment`, so that tenants that live at the same moment do not
// overlap. Returns the bytes needed. Large tenants are placed first, each at the lowest free place.
size_t pack(kj::ArrayPtr<Tenant* const> tenants, size_t alignment);

}  // namespace nn
