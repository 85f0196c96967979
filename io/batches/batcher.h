// io/batches/batcher.h: batches for the steps of a worker, read and decoded ahead by threads.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "io/batches/stream.h"
#include "io/datasets/datasets.h"

namespace io {

// How a batch has its images.
struct BatchForm {
  enum Word {
    PIXELS,   // augmented
    BYTES,    // as they are stored, for whoever augments them
    NUMBERS,  // not at all: for whoever has all records
  } word = PIXELS;
  // Of BYTES: gives zeros, memory that readers write to.
  kj::Maybe<kj::Function<kj::Array<kj::byte>(size_t bytes)>> allocate = nullptr;
  // Of NUMBERS: a label for each record, which is not read then.
  kj::ArrayPtr<const int32_t> labels = nullptr;
};

// The shape of the images of BYTES: as they are stored, or if they differ in shape, the batch's:
// then they are cropped, and only mirrors are left to draw. Null if they cannot be cropped to
// bytes.
kj::Maybe<ImageShape> shapeOfBytes(const Dataset& dataset, const DataConfig& config);

// Images ready for a step. Valid until the next call of Batcher::next().
struct Batch {
  uint64_t step;
  // One of these, or none, by the batch's form; N = batchSize.
  kj::ArrayPtr<const float> pixels;  // N×C×H×W; 0 in rows that do not count
  // N×C×H×W of shapeOfBytes(); anything in rows that do not count
  kj::ArrayPtr<const kj::byte> bytes;
  // N each, but for PIXELS: the records, and what was drawn for them.
  kj::ArrayPtr<const uint64_t> records;
  kj::ArrayPtr<const Augmentation> augmentations;
  kj::ArrayPtr<const int32_t> labels;  // N; -1 in rows that do not count, which come last
  uint images;                         // rows that count: always N in training
  // N; what a row's dropout is drawn from: a function of (seed, pass, record). 0 in rows that do
  // not count, and in validation.
  kj::ArrayPtr<const uint64_t> draws;
  // Validation: of how many views of the images this is one, its weight, and whether it is their
  // last one. 1, 1 and true in training.
  uint views;
  float weight;
  bool isLastView;
};

// What was met on the way, in the batches handed out so far.
struct BatcherCounts {
  uint64_t badRecords = 0;  // skipped, each time one was met
  uint64_t waited_ns = 0;   // time next() waited for readers
};

// Reads, decodes and augments ahead on `readerThreads` threads into a ring of preallocated batches.
// next() is called by one thread. What is in a batch never depends on the number of threads or on
// time. Destroying it waits for the images in work, no longer.
//
// With on_bad_record = "skip", the next good record of the same batch stands in for a bad one in
// training (the first follows the last); a batch without any good record is an error. In validation
// a bad record is left out.
class Batcher {
public:
  // Training batches of worker `rank` of `workers`, from `firstStep` on, without end, in the order
  // of its Stream. `dataset` must outlive it, and so must what `form` points to.
  static kj::Own<Batcher> training(const Dataset& dataset, const DataConfig& config, uint64_t seed,
      uint workers, uint rank, uint64_t firstStep, BatchForm form = {});
  // Validation batches of this worker's part (or of all records), in order, once for each view;
  // then next() gives null. It begins with the views of a validation that is not the last, and is
  // started over with restart(). Part r of W of M records is those from floor(r·M/W) to before
  // floor((r+1)·M/W). The records are the data set's own, or those held out.
  static kj::Own<Batcher> validation(const Dataset& dataset, const DataConfig& config, uint workers,
      uint rank, BatchForm form = {});

  virtual ~Batcher() noexcept(false) = default;

  // The next batch; waits for the readers. An error met by a reader (an unreadable database, a bad
  // record under on_bad_record = "fail") is thrown here, when its batch is due, and at every call
  // after that.
  virtual kj::Maybe<const Batch&> next() = 0;
  // Validation only: from the first batch again, with these views of it, which must outlive this.
  virtual void restart(kj::ArrayPtr<const View> views) = 0;
  virtual BatcherCounts counts() const = 0;
  // One sentence a record skipped since the last call, naming record, database and cause; the first
  // few of a batch.
  virtual kj::Array<kj::String> takeReports() = 0;
};

}  // namespace io
