// nn/loops/floats.h: arrays of floats, begun and copied.
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

// The same in `memory`, which the caller keeps; on the heap if that is empty.
inline kj::Array<float> zerosIn(kj::ArrayPtr<float> memory, size_t size) {
  if (memory.size() == 0) return zeros(size);
  KJ_REQUIRE(memory.size() == size, memory.size(), size);
  for (auto& value: memory) value = 0;
  return kj::Array<float>(memory.begin(), size, kj::NullArrayDisposer::instance);
}

// Both of the same length, which may be 0, and without overlap.
inline void copy(kj::ArrayPtr<const float> from, kj::ArrayPtr<float> to) {
  KJ_REQUIRE(from.size() == to.size(), from.size(), to.size());
  if (from.size() > 0) memcpy(to.begin(), from.begin(), from.size() * sizeof(float));
}

}  // namespace nn
