#include "nn/cpu/memory.h"

#include <string.h>

namespace nn::cpu {
namespace {

constexpr size_t LINE_BYTES = 64;

size_t roundUp(size_t bytes) {
  return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

}  // namespace

size_t pack(kj::ArrayPtr<Buffer* const> buffers) {
  for (auto* buffer: buffers) buffer->bytes = buffer->values * bytesOf(buffer->element);
  auto tenants = KJ_MAP(buffer, buffers)->Tenant* {
    return buffer;
  };
  return nn::pack(tenants, LINE_BYTES);
}

Arena::Arena(size_t size): memory(kj::heapArray<byte>(size + LINE_BYTES)) {
  memset(memory.begin(), 0, memory.size());
  auto address = reinterpret_cast<uintptr_t>(memory.begin());
  start = memory.begin() + (roundUp(address) - address);
}

}  // namespace nn::cpu
