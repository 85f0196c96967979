// Measures the machine without a parameter server: raw streams, shared memory, copies.
#include <errno.h>
#include <kj/debug.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "configs/language/failure.h"
#include "nn/loops/each_instruction_set.h"
#include "tools/bench/kv_roles.h"
#include "tools/bench/roles.h"

namespace tools {
namespace {

constexpr uint64_t SHARED_PAGE_BYTES = 4096;

void writeAll(int fd, kj::ArrayPtr<const kj::byte> bytes) {
  while (bytes.size() > 0) {
    ssize_t n;
    KJ_SYSCALL(n = ::write(fd, bytes.begin(), bytes.size()));
    bytes = bytes.slice(n, bytes.size());
  }
}

// Returns false if the other end has gone.
bool readAll(int fd, kj::ArrayPtr<kj::byte> bytes) {
  while (bytes.size() > 0) {
    ssize_t n = ::read(fd, bytes.begin(), bytes.size());
    if (n == 0 || (n < 0 && errno == ECONNRESET)) return false;
    KJ_REQUIRE(n > 0, "a raw stream cannot be read", strerror(errno));
    bytes = bytes.slice(n, bytes.size());
  }
  return true;
}

// Returns whole numbers, whose sums are exact.
kj::Array<float> smallNumbers(uint64_t size) {
  auto numbers = kj::heapArray<float>(size);
  for (auto i: kj::indices(numbers)) numbers[i] = float(1 + i % 7);
  return numbers;
}

kj::Array<float> zeros(uint64_t size) {
  auto numbers = kj::heapArray<float>(size);
  for (auto& number: numbers) number = 0;
  return numbers;
}

void require(kj::ArrayPtr<const float> got, kj::ArrayPtr<const float> sent, double times) {
  for (auto i: kj::indices(got)) {
    if (got[i] != float(sent[i] * times)) configs::fail("a raw stream returned a wrong value");
  }
}

// into ← into + values
EACH_INSTRUCTION_SET void addTo(float* __restrict__ into, const float* values, size_t size) {
  for (size_t i = 0; i < size; ++i) into[i] += values[i];
}

void wait(std::atomic<uint32_t>& word, uint32_t old) {
  while (word.load(std::memory_order_acquire) == old) {
    ::syscall(SYS_futex, &word, FUTEX_WAIT, old, nullptr, nullptr, 0);
  }
}

void ring(std::atomic<uint32_t>& word, uint32_t value) {
  word.store(value, std::memory_order_release);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Memory that both ends of a raw stream have mapped: the pushed values, the pulled values, and a
// page with two words to sleep on.
class SharedPages {
public:
  struct Head {
    std::atomic<uint32_t> asked;
    alignas(64) std::atomic<uint32_t> answered;
  };

  // Maps the file, which has sharedBytes(floats).
  SharedPages(int file, uint64_t floats): bytes(sharedBytes(floats)), floats(floats) {
    start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    KJ_REQUIRE(start != MAP_FAILED, strerror(errno));
  }
  ~SharedPages() noexcept(false) { ::munmap(start, bytes); }
  KJ_DISALLOW_COPY(SharedPages);

  Head& head() { return *static_cast<Head*>(start); }
  kj::ArrayPtr<float> pushed() { return at(SHARED_PAGE_BYTES); }
  kj::ArrayPtr<float> pulled() { return at((SHARED_PAGE_BYTES + bytes) / 2); }

private:
  kj::ArrayPtr<float> at(uint64_t offset) {
    return kj::arrayPtr(reinterpret_cast<float*>(static_cast<kj::byte*>(start) + offset), floats);
  }

  uint64_t bytes, floats;
  void* start;
};

}  // namespace

uint64_t sharedBytes(uint64_t floats) {
  uint64_t pages = (floats * sizeof(float) + SHARED_PAGE_BYTES - 1) / SHARED_PAGE_BYTES;
  return (1 + 2 * pages) * SHARED_PAGE_BYTES;
}

void runProbe(const KvRole& role) {
  auto sent = smallNumbers(role.kvCase.streamFloats());
  auto got = zeros(sent.size());
  auto through = zeros(role.wire == Wire::COPY ? sent.size() : 0);
  double times = 1;  // an ECHO over MEMORY adds what it gets
  uint32_t number = 0;
  kj::Maybe<kj::Own<SharedPages>> pages;
  if (role.wire == Wire::MEMORY) pages = kj::heap<SharedPages>(FIRST_STREAM, sent.size());

  auto trip = [&]() {
    KJ_IF_MAYBE(own, pages) {
      auto& shared = **own;
      memcpy(shared.pushed().begin(), sent.begin(), sent.asBytes().size());
      ring(shared.head().asked, ++number);
      wait(shared.head().answered, number - 1);
      memcpy(got.begin(), shared.pulled().begin(), got.asBytes().size());
      times = number;
    } else if (role.wire == Wire::COPY) {
      memcpy(through.begin(), sent.begin(), sent.asBytes().size());
      asm volatile("" ::"r"(through.begin()) : "memory");
      memcpy(got.begin(), through.begin(), got.asBytes().size());
    } else {
      writeAll(FIRST_STREAM, sent.asBytes());
      KJ_REQUIRE(readAll(FIRST_STREAM, got.asBytes()), "the echo has gone");
    }
  };
  carryOutOrders(trip, [&]() {
    trip();
    // Sums are exact while they have 24 bits.
    if (times * 7 < 1 << 24) require(got, sent, times);
  });
}

void runEcho(const KvRole& role) {
  auto values = zeros(role.kvCase.streamFloats());
  if (role.wire == Wire::MEMORY) {
    SharedPages pages(FIRST_STREAM, values.size());
    for (uint32_t number = 1;; ++number) {
      wait(pages.head().asked, number - 1);
      addTo(pages.pulled().begin(), pages.pushed().begin(), values.size());
      ring(pages.head().answered, number);
    }
  }
  while (readAll(FIRST_STREAM, values.asBytes())) writeAll(FIRST_STREAM, values.asBytes());
}

}  // namespace tools
