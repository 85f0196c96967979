#include "io/batches/chunk_order.h"

#include <doctest/doctest.h>
#include <kj/array.h>
#include <kj/vector.h>

#include <algorithm>

namespace io {

namespace {

kj::Array<uint64_t> recordsOf(uint64_t n, Chunks chunks, uint64_t seed, uint64_t a, uint64_t b) {
  ChunkOrder order(n, chunks, seed, a, b);
  auto result = kj::heapArray<uint64_t>(n);
  for (uint64_t place = 0; place < n; ++place) result[place] = order.at(place);
  return result;
}

// Returns the first record of each run of records that follow one another. The first of `n` records
// follows the last one.
kj::Vector<uint64_t> runsIn(kj::ArrayPtr<const uint64_t> window, uint64_t n) {
  kj::Vector<uint64_t> runs;
  for (auto record: window) {
    auto before = std::find(window.begin(), window.end(), (record + n - 1) % n);
    if (before == window.end()) runs.add(record);
  }
  return runs;
}

}  // namespace

TEST_CASE("ChunkOrder: every order has every record once, whatever the chunks are") {
  for (uint64_t n: {1, 2, 7, 8, 9, 100, 1000, 1024}) {
    for (uint records: {1, 3, 8, 2000}) {
      for (uint window: {1, 2, 5, 600}) {
        INFO(n << " records, " << records << " per chunk, " << window << " chunks per window");
        auto found = recordsOf(n, {records, window}, 3, 1, 0);
        std::sort(found.begin(), found.end());
        bool isWhole = true;
        for (uint64_t i = 0; i < n; ++i) isWhole = isWhole && found[i] == i;
        CHECK(isWhole);
      }
    }
  }
}

TEST_CASE("ChunkOrder: a window has the records of its chunks in random order") {
  constexpr uint64_t N = 1030, WINDOW = 4 * 16;
  auto found = recordsOf(N, {.records = 16, .window = 4}, 5, 2, 0);
  uint inOrder = 0;
  for (uint64_t begin = 0; begin < N; begin += WINDOW) {
    auto window = found.slice(begin, std::min(N, begin + WINDOW));
    CHECK(runsIn(window, N).size() <= 4);
    for (auto i: kj::range(size_t(1), window.size())) inOrder += window[i] == window[i - 1] + 1;
  }
  // By chance, a record follows the one before it about once per window.
  CHECK(inOrder < 50);
}

TEST_CASE("ChunkOrder: the order depends on the seed and on both numbers after it") {
  Chunks chunks{.records = 16, .window = 4};
  auto one = recordsOf(1000, chunks, 5, 2, 0);
  CHECK(one == recordsOf(1000, chunks, 5, 2, 0));
  for (auto& other: {recordsOf(1000, chunks, 6, 2, 0), recordsOf(1000, chunks, 5, 3, 0),
           recordsOf(1000, chunks, 5, 2, 1)}) {
    uint same = 0;
    for (auto i: kj::indices(one)) same += one[i] == other[i];
    CHECK(same < 20);
  }
}

TEST_CASE("ChunkOrder: chunks begin at another record in each order") {
  constexpr uint64_t N = 64, CHUNK = 16;
  uint counts[CHUNK] = {};
  for (uint pass = 0; pass < 1600; ++pass) {
    auto order = recordsOf(N, {.records = CHUNK, .window = 1}, 5, pass, 0);
    auto begins = runsIn(order.slice(0, CHUNK), N);
    REQUIRE(begins.size() == 1);
    ++counts[begins[0] % CHUNK];
  }
  for (uint count: counts) CHECK((count > 60 && count < 140));
}

TEST_CASE("ChunkOrder: at() finds a place without having visited the places before it") {
  Chunks chunks{.records = 10, .window = 3};
  auto all = recordsOf(505, chunks, 1, 1, 0);
  ChunkOrder order(505, chunks, 1, 1, 0);
  for (uint64_t place: {504, 0, 250, 31, 29, 504, 3}) CHECK(order.at(place) == all[place]);
}

}  // namespace io
