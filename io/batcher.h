// io/batcher.h: the stream of batches: which record comes when, and threads that decode ahead.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>

#include "io/datasets.h"

namespace io {

// The one order (DESIGN "One order for everybody"): pass e over the N records is the permutation given by (seed, e);
// the passes one after another are one stream; step t takes the next W·b of it, worker r the r-th b of these.
class Stream {
public:
  Stream(uint64_t records, uint64_t seed, uint workers, uint rank, uint batchSize);

  // A record and the pass it is read in: what its augmentation is drawn from.
  struct Place {
    uint64_t record;
    uint64_t pass;
  };
  // Records of this worker's batch of step `step` (from 0), in order. Keeps the permutations of the last two passes;
  // not thread-safe.
  void places(uint64_t step, kj::ArrayPtr<Place> out);

  // Steps in all before and in epoch `epoch` (from 1): floor(epoch · N / (W · b)).
  static uint64_t stepsUntilEndOf(uint64_t epoch, uint64_t records, uint workers, uint batchSize);
};

// Images ready for a step. Valid until the next call of Batcher::next().
struct Batch {
  uint64_t step;
  kj::ArrayPtr<const float> pixels;    // N×C×H×W, N = batchSize
  kj::ArrayPtr<const int32_t> labels;  // N; -1 for rows that fill up the last batch of a validation
  uint images;                         // rows that count
};

// What was met on the way.
struct BatcherCounts {
  uint64_t badRecords = 0;  // skipped: another record of the batch stands in for each
  uint64_t waited_ns = 0;   // time next() waited for readers
};

// Decodes and augments ahead on `readerThreads` threads into a ring of preallocated batches. next() is called by one
// thread. What is in a batch never depends on the number of threads or on time.
class Batcher {
public:
  // Training batches of worker `rank` of `workers`, from `firstStep` on, without end.
  static kj::Own<Batcher> training(const Dataset& dataset, const DataConfig& config, uint64_t seed,
      uint workers, uint rank, uint64_t firstStep);
  // Validation batches of this worker's part (or of all records), in order, once; then next() gives null. It can be
  // started over with restart().
  static kj::Own<Batcher> validation(
      const Dataset& dataset, const DataConfig& config, uint workers, uint rank);

  virtual ~Batcher() noexcept(false) = default;

  // The next batch; waits for the readers. An error met by a reader (an unreadable database, a bad record under
  // on_bad_record = "fail") is thrown here.
  virtual kj::Maybe<const Batch&> next() = 0;
  // Validation only: from the first batch again.
  virtual void restart() = 0;
  virtual BatcherCounts counts() const = 0;
};

}  // namespace io
