#include "nn/cpu/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

namespace nn::cpu {
namespace {

constexpr size_t LINE_BYTES = 64;
constexpr size_t HUGE_PAGE_BYTES = 2 * 1024 * 1024;

size_t roundUp(size_t bytes, size_t unit_bytes) {
  return (bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
}

}  // namespace

size_t pack(kj::ArrayPtr<Buffer* const> buffers) {
  for (auto* buffer: buffers) buffer->bytes = buffer->values * bytesOf(buffer->element);
  auto tenants = KJ_MAP(buffer, buffers)->Tenant* {
    return buffer;
  };
  return nn::pack(tenants, LINE_BYTES);
}

Arena::Arena(size_t size): size_bytes(size), mapped_bytes(size + HUGE_PAGE_BYTES) {
  void* memory = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  KJ_REQUIRE(memory != MAP_FAILED, "no memory for the values of a network", size, strerror(errno));
  mapped = static_cast<byte*>(memory);
  auto address = reinterpret_cast<uintptr_t>(mapped);
  start = mapped + (roundUp(address, HUGE_PAGE_BYTES) - address);
  // A system without huge pages refuses. Small pages then have to do.
  if (size >= HUGE_PAGE_BYTES) ::madvise(start, size, MADV_HUGEPAGE);
}

Arena::~Arena() noexcept {
  ::munmap(mapped, mapped_bytes);
}

}  // namespace nn::cpu
