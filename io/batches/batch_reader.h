// io/batches/batch_reader.h: fills one batch on one thread. For batcher.cc alone.
#pragma once

#include <kj/array.h>
#include <kj/exception.h>
#include <kj/vector.h>

#include <atomic>

#include "io/batches/batcher.h"
#include "io/batches/stream.h"
#include "io/images/augment.h"
#include "io/records/record_db.h"

namespace io {

// The plan of a batch: which samples it will hold.
struct BatchPlan {
  uint64_t step = 0;
  kj::Array<Stream::Sample> samples;  // batchSize samples, of which the first `count` are used
  size_t count = 0;
  uint views = 1;  // in validation: the views of each image, of which this batch shows one
  View view = CENTRE_VIEW[0];
  bool isLastView = true;
};

// A batch in the ring. A reader thread owns a slot from the moment at which it claims the slot
// until the slot is filled. Then the caller of next() uses the slot until its next call of next().
struct BatchSlot {
  BatchPlan plan;
  kj::Array<uint64_t> records;
  // Each is empty if the form of the batch does not have it.
  kj::Array<float> pixels;
  kj::Array<kj::byte> bytes;
  kj::Array<Augmentation> augmentations;
  kj::Array<int32_t> labels;
  kj::Array<uint64_t> draws;
  uint images = 0;
  uint64_t badRecords = 0;
  kj::Vector<kj::String> reports;
  kj::Maybe<kj::Exception> error;
};

// The shared state of all reader threads. Only `stopping` changes.
struct BatchWork {
  enum class Kind { TRAINING, VALIDATION };

  Kind kind;
  BatchForm::Word form;
  kj::ArrayPtr<const int32_t> labels;  // see BatchForm
  // The shape of all images before they are cropped. Null if images differ in shape, or if crops
  // are resized.
  kj::Maybe<ImageShape> stored;
  const RecordDb& records;
  Augmenter augmenter;
  uint64_t seed;
  BadRecordPolicy policy;
  std::atomic<bool> stopping{false};
};

// Fills slots by their plans, on one thread.
class BatchReader {
public:
  // `work` must outlive it.
  explicit BatchReader(const BatchWork& work);
  ~BatchReader() noexcept(false);

  void fill(BatchSlot& slot);

private:
  class ImageReader;

  // Reads sample `index` of the plan into the next free row. Returns false if the record is bad and
  // may be skipped.
  bool readGood(BatchSlot& slot, size_t index);

  const BatchWork& work;
  kj::Own<ImageReader> reader;
};

}  // namespace io
