// nn/loops/floats.h: makes and copies arrays of floats.
#pragma once

#include <kj/array.h>
#include <kj/debug.h>
#include <string.h>

namespace nn {

inline kj::Array<float> zeros(size_t size) {
  auto values = kj::heapArray<float>(size);
  for (auto& value: values) value = 0;
  return values;
}

// Returns zeros in `memory`, which stays the caller's, or on the heap if `memory` is empty.
inline kj::Array<float> zerosIn(kj::ArrayPtr<float> memory, size_t size) {
  if (memory.size() == 0) return zeros(size);
  KJ_REQUIRE(memory.size() == size, memory.size(), size);
  for (auto& value: memory) value = 0;
  return kj::Array<float>(memory.begin(), size, kj::NullArrayDisposer::instance);
}

// Copies an array to another one of the same length, which may be 0. They must not overlap.
inline void copy(kj::ArrayPtr<const float> from, kj::ArrayPtr<float> to) {
  KJ_REQUIRE(from.size() == to.size(), from.size(), to.size());
  if (from.size() > 0) memcpy(to.begin(), from.begin(), from.size() * sizeof(float));
}

}  // namespace nn
