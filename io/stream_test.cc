#include "io/stream.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

namespace io {

namespace {

// The first `count` places of the stream as one worker of batch 1 reads them.
kj::Array<Stream::Place> serial(uint64_t records, uint64_t seed, size_t count) {
  Stream stream(records, seed, 1, 0, 1);
  auto result = kj::heapArray<Stream::Place>(count);
  for (auto i: kj::indices(result)) stream.places(i, result.slice(i, i + 1));
  return result;
}

}  // namespace

TEST_CASE("Stream: every pass holds every record once, in an order of its own") {
  auto all = serial(100, 7, 300);
  uint sameAsBefore = 0;
  for (uint pass = 0; pass < 3; ++pass) {
    bool seen[100] = {};
    for (uint i = 0; i < 100; ++i) {
      auto& place = all[pass * 100 + i];
      CHECK(place.pass == pass);
      CHECK(!seen[place.record]);
      seen[place.record] = true;
      if (pass > 0 && all[(pass - 1) * 100 + i].record == place.record) ++sameAsBefore;
    }
  }
  CHECK(sameAsBefore < 20);
}

TEST_CASE("Stream: the order depends on the seed alone") {
  auto one = serial(50, 1, 50);
  CHECK(one == serial(50, 1, 50));
  CHECK(one != serial(50, 2, 50));
}

TEST_CASE("Stream: W workers of batch b read what one worker of batch W·b reads") {
  for (uint workers: {1, 2, 3}) {
    // 47 records: batches cross the ends of passes.
    auto all = serial(47, 3, 5 * 8 * workers);
    for (uint rank = 0; rank < workers; ++rank) {
      Stream stream(47, 3, workers, rank, 8);
      Stream::Place batch[8];
      for (uint step = 0; step < 5; ++step) {
        stream.places(step, batch);
        size_t from = (step * workers + rank) * 8;
        CHECK(kj::arrayPtr(batch, 8) == all.slice(from, from + 8));
      }
    }
  }
}

TEST_CASE("Stream: a batch may be larger than the data set, and steps may be asked in any order") {
  auto all = serial(5, 9, 64);
  Stream stream(5, 9, 1, 0, 16);
  Stream::Place batch[16];
  for (uint step: {3, 0, 2}) {
    stream.places(step, batch);
    CHECK(kj::arrayPtr(batch, 16) == all.slice(step * 16, step * 16 + 16));
  }
}

TEST_CASE("Stream: an epoch ends after floor(e·N / (W·b)) steps") {
  CHECK(Stream::stepsUntilEndOf(1, 50000, 2, 128) == 195);
  CHECK(Stream::stepsUntilEndOf(2, 50000, 2, 128) == 390);
  CHECK(Stream::stepsUntilEndOf(8, 50000, 2, 128) == 1562);
}

}  // namespace io
