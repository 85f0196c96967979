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

#include "configs/language/each_instruction_set.h"
#include "configs/language/failure.h"
#include "nn/loops/floats.h"
#include "tools/bench/kv_store.h"
#include "tools/bench/roles.h"

namespace tools {
namespace {

void writeAll(int fd, kj::ArrayPtr<const kj::byte> bytes) {
  while (bytes.size() > 0) {
    ssize_t n;
    KJ_SYSCALL(n = ::write(fd, bytes.begin(), bytes.size()));
    bytes = bytes.slice(n, bytes.size());
  }
}

// Returns false if the other end has disconnected.
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

// Memory that both ends of a raw stream share: the pushed values, the pulled values, and a page
// with two words to sleep on. Both ends are children of the process that makes it.
class SharedPages {
public:
  struct Head {
    std::atomic<uint32_t> asked;
    alignas(64) std::atomic<uint32_t> answered;
  };

  explicit SharedPages(uint64_t floats): floats(floats) {
    constexpr int MODE = MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE;
    start = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MODE, -1, 0);
    KJ_REQUIRE(start != MAP_FAILED, strerror(errno));
  }
  ~SharedPages() noexcept(false) { ::munmap(start, bytes()); }
  KJ_DISALLOW_COPY(SharedPages);

  Head& head() { return *static_cast<Head*>(start); }
  kj::ArrayPtr<float> pushed() { return at(PAGE_BYTES); }
  kj::ArrayPtr<float> pulled() { return at(PAGE_BYTES + valueBytes()); }

private:
  static constexpr uint64_t PAGE_BYTES = 4096;

  // Of the pages of one direction.
  uint64_t valueBytes() const {
    return (floats * sizeof(float) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  }
  uint64_t bytes() const { return PAGE_BYTES + 2 * valueBytes(); }
  kj::ArrayPtr<float> at(uint64_t offset) {
    return kj::arrayPtr(reinterpret_cast<float*>(static_cast<kj::byte*>(start) + offset), floats);
  }

  uint64_t floats;
  void* start;
};

// The arrays of a worker that checks the answers.
struct Values {
  explicit Values(uint64_t floats): sent(smallNumbers(floats)), got(nn::zeros(floats)) {}

  kj::Array<float> sent, got;
};

void probeStream(uint64_t floats) {
  Values values(floats);
  auto trip = [&]() {
    writeAll(FIRST_STREAM, values.sent.asBytes());
    KJ_REQUIRE(readAll(FIRST_STREAM, values.got.asBytes()), "the echo process has ended");
  };
  carryOutOrders(trip, [&]() {
    trip();
    require(values.got, values.sent, 1);
  });
}

void echoStream(uint64_t floats) {
  auto values = nn::zeros(floats);
  while (readAll(FIRST_STREAM, values.asBytes())) writeAll(FIRST_STREAM, values.asBytes());
}

void probeMemory(SharedPages& shared, uint64_t floats) {
  Values values(floats);
  uint32_t number = 0;
  auto trip = [&]() {
    nn::copy(values.sent, shared.pushed());
    ring(shared.head().asked, ++number);
    wait(shared.head().answered, number - 1);
    nn::copy(shared.pulled(), values.got);
  };
  carryOutOrders(trip, [&]() {
    trip();
    // The echo adds all values that it receives. Sums are exact as long as they have at most 24
    // bits.
    if (number * 7 < 1 << 24) require(values.got, values.sent, number);
  });
}

void echoMemory(SharedPages& shared) {
  for (uint32_t number = 1;; ++number) {
    wait(shared.head().asked, number - 1);
    addTo(shared.pulled().begin(), shared.pushed().begin(), shared.pushed().size());
    ring(shared.head().answered, number);
  }
}

void probeCopies(uint64_t floats) {
  Values values(floats);
  auto through = nn::zeros(floats);
  auto trip = [&]() {
    nn::copy(values.sent, through);
    asm volatile("" ::"r"(through.begin()) : "memory");
    nn::copy(through, values.got);
  };
  carryOutOrders(trip, [&]() {
    trip();
    require(values.got, values.sent, 1);
  });
}

}  // namespace

void addRawStream(KvSide& side, uint64_t floats, KvCores cores, StreamPair stream) {
  int near = stream.near, far = stream.far;
  side.add(
      KvSide::PARTNER, kj::str("echo"), cores.servers, {&far, 1}, [&]() { echoStream(floats); });
  side.add(
      KvSide::ASKED, kj::str("probe"), cores.workers, {&near, 1}, [&]() { probeStream(floats); });
}

kj::Own<KvSide> startLimit(const KvCase& kvCase, Wire wire, KvCores cores) {
  auto side = kj::heap<KvSide>(kj::str(wire, wire == Wire::COPY ? "" : " raw"));
  uint64_t floats = (kvCase.floats() + kvCase.servers - 1) / kvCase.servers;
  for (KJ_UNUSED auto pair: kj::range(0u, kvCase.workers * kvCase.servers)) {
    if (wire == Wire::TCP || wire == Wire::UNIX) {
      addRawStream(*side, floats, cores, wire == Wire::TCP ? newTcpStream() : newUnixStream());
    } else if (wire == Wire::MEMORY) {
      SharedPages shared(floats);
      side->add(
          KvSide::PARTNER, kj::str("echo"), cores.servers, nullptr, [&]() { echoMemory(shared); });
      side->add(KvSide::ASKED, kj::str("probe"), cores.workers, nullptr,
          [&]() { probeMemory(shared, floats); });
    } else {
      side->add(
          KvSide::ASKED, kj::str("copies"), cores.workers, nullptr, [&]() { probeCopies(floats); });
    }
  }
  return side;
}

}  // namespace tools
