#include "io/batches/reader_balance.h"

#include <doctest/doctest.h>

namespace io {

namespace {

constexpr uint64_t MS = 1000000;

// A worker whose steps take 10 ms. A batch takes one thread `batch_ms`, and the machine has `cores`
// cores.
struct Worker {
  double batch_ms;
  uint cores;
  uint threads = 2;
  uint threadsMax = 64;
  ReaderBalance balance{threads, threadsMax};
  uint64_t now_ns = 1;

  void train(uint steps) {
    for (uint i = 0; i < steps; ++i) {
      double reading_ms = batch_ms / (threads < cores ? threads : cores);
      double waited_ms = reading_ms > 10 ? reading_ms - 10 : 0;
      now_ns += uint64_t((10 + waited_ms) * MS);
      if (balance.needsMore(uint64_t(waited_ms * MS), now_ns)) ++threads;
    }
  }
};

}  // namespace

TEST_CASE("ReaderBalance: adds threads until steps do not wait, and no more") {
  Worker worker{.batch_ms = 75, .cores = 16};
  worker.train(10000);
  CHECK(worker.threads == 8);
}

TEST_CASE("ReaderBalance: a worker that does not wait keeps its threads") {
  Worker worker{.batch_ms = 15, .cores = 16};
  worker.train(10000);
  CHECK(worker.threads == 2);
}

TEST_CASE("ReaderBalance: stops when a thread does not help, because all cores are busy") {
  Worker worker{.batch_ms = 400, .cores = 4};
  worker.train(10000);
  CHECK(worker.threads == 5);
}

TEST_CASE("ReaderBalance: adds threads up to its limit") {
  Worker worker{.batch_ms = 4000, .cores = 64, .threads = 2, .threadsMax = 12};
  worker.train(10000);
  CHECK(worker.threads == 12);
}

TEST_CASE("ReaderBalance: adds a thread when steps begin to wait later, as after a cold start") {
  Worker worker{.batch_ms = 15, .cores = 16};
  worker.train(1000);
  worker.batch_ms = 35;
  worker.train(1000);
  CHECK(worker.threads == 4);
}

TEST_CASE("ReaderBalance: a pause between steps does not count as waiting") {
  Worker worker{.batch_ms = 21, .cores = 16};
  for (uint epoch = 0; epoch < 100; ++epoch) {
    worker.train(150);
    worker.now_ns += 60000 * MS;
  }
  // The steps wait for less than a tenth of their time.
  CHECK(worker.threads <= 3);
}

}  // namespace io
