#include "nn/cpu/memory.h"

#include <string.h>

#include "nn/lifetimes.h"

namespace nn::cpu {
namespace {

constexpr size_t LINE_BYTES = 64;

size_t roundUp(size_t bytes) {
  return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

}  // namespace

size_t pack(kj::ArrayPtr<Buffer* const> buffers) {
  auto tenants = KJ_MAP(buffer, buffers) {
    return Tenant{buffer->bytes(), buffer->first, buffer->last};
  };
  size_t total = nn::pack(tenants, LINE_BYTES);
  for (auto i: kj::indices(buffers)) buffers[i]->offset = tenants[i].offset;
  return total;
}

Arena::Arena(size_t size): memory(kj::heapArray<byte>(size + LINE_BYTES)) {
  memset(memory.begin(), 0, memory.size());
  auto address = reinterpret_cast<uintptr_t>(memory.begin());
  start = memory.begin() + (roundUp(address) - address);
}

}  // namespace nn::cpu
