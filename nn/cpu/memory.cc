#include "nn/cpu/memory.h"

#include <string.h>

#include <algorithm>

namespace nn::cpu {
namespace {

constexpr size_t LINE_BYTES = 64;

size_t roundUp(size_t bytes) {
  return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

bool meet(const Buffer& a, const Buffer& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

size_t pack(kj::ArrayPtr<Buffer* const> buffers) {
  auto order = kj::heapArray<Buffer*>(buffers);
  std::stable_sort(
      order.begin(), order.end(), [](Buffer* a, Buffer* b) { return a->bytes() > b->bytes(); });

  size_t total = 0;
  kj::Vector<Buffer*> placed;  // by offset
  for (auto* buffer: order) {
    size_t size = roundUp(buffer->bytes());
    size_t offset = 0;
    for (auto* other: placed) {
      if (!meet(*buffer, *other)) continue;
      if (offset + size <= other->offset) break;
      offset = kj::max(offset, other->offset + roundUp(other->bytes()));
    }
    buffer->offset = offset;
    total = kj::max(total, offset + size);
    placed.add(buffer);
    std::stable_sort(
        placed.begin(), placed.end(), [](Buffer* a, Buffer* b) { return a->offset < b->offset; });
  }
  return total;
}

Arena::Arena(size_t size): memory(kj::heapArray<byte>(size + LINE_BYTES)) {
  memset(memory.begin(), 0, memory.size());
  auto address = reinterpret_cast<uintptr_t>(memory.begin());
  start = memory.begin() + (roundUp(address) - address);
}

}  // namespace nn::cpu
