#include "nn/cpu/memory.h"

#include <doctest/doctest.h>
#include <stdint.h>

#include <random>

namespace nn::cpu {
namespace {

Buffer bufferOf(size_t values, uint first, uint last) {
  Buffer buffer;
  buffer.home = Buffer::BATCH;
  buffer.values = values;
  buffer.use(first);
  buffer.use(last);
  return buffer;
}

bool overlap(const Buffer& a, const Buffer& b) {
  bool inTime = a.first <= b.last && b.first <= a.last;
  bool inSpace = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  return inTime && inSpace;
}

TEST_CASE("memory: buffers that never live at the same moment share their place") {
  Buffer a = bufferOf(100, 0, 1), b = bufferOf(60, 2, 3), c = bufferOf(40, 1, 2);
  Buffer* all[] = {&a, &b, &c};
  // a and b use the same place in turn, and c lies beside it. Sizes are whole lines of 16 floats.
  CHECK(pack(all) == 4 * (112 + 48));
  CHECK(a.offset == b.offset);
}

TEST_CASE("memory: a buffer that is kept shares its place with no other") {
  Buffer a = bufferOf(16, 0, 1), b = bufferOf(16, 5, 6);
  a.keep();
  Buffer* all[] = {&a, &b};
  CHECK(pack(all) == 128);
}

TEST_CASE("memory: buffers that live at the same moment never overlap, and begin on a cache line") {
  std::mt19937 random(1);
  for (uint round = 0; round < 20; ++round) {
    auto buffers = kj::heapArray<Buffer>(60);
    auto pointers = kj::heapArray<Buffer*>(buffers.size());
    for (size_t i = 0; i < buffers.size(); ++i) {
      uint first = random() % 30;
      buffers[i] = bufferOf(1 + random() % 500, first, first + random() % 8);
      pointers[i] = &buffers[i];
    }
    size_t total = pack(pointers);
    for (size_t i = 0; i < buffers.size(); ++i) {
      CHECK(buffers[i].offset % 64 == 0);
      CHECK(buffers[i].offset + buffers[i].bytes <= total);
      for (size_t j = 0; j < i; ++j) CHECK(!overlap(buffers[i], buffers[j]));
    }
  }
}

TEST_CASE("memory: an arena is zero, begins on a cache line, and can be written to its end") {
  for (size_t size: {size_t(100), size_t(5'000'000)}) {
    Arena arena(size);
    CHECK(arena.bytes() == size);
    CHECK(reinterpret_cast<uintptr_t>(arena.begin()) % 64 == 0);
    size_t set = 0;
    for (size_t i = 0; i < size; ++i) {
      if (arena.begin()[i] != 0) ++set;
      arena.begin()[i] = 1;
    }
    CHECK(set == 0);
  }
}

}  // namespace
}  // namespace nn::cpu
