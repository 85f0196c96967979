// io/batches/batcher.h: the batches of a worker's steps. Threads read and decode them ahead.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "io/batches/division.h"
#include "io/batches/stream.h"
#include "io/datasets/datasets.h"

namespace io {

// In which form a batch has its images.
struct BatchForm {
  enum Word {
    PIXELS,   // augmented pixels
    BYTES,    // the stored bytes; the caller augments them
    NUMBERS,  // no images, only the numbers of records; the caller has the images of all records
  } word = PIXELS;
  // For BYTES: returns memory for readers to write to, filled with zeros.
  kj::Maybe<kj::Function<kj::Array<kj::byte>(size_t bytes)>> allocate = nullptr;
  // For NUMBERS: a label for each record. The records are not read.
  kj::ArrayPtr<const int32_t> labels = nullptr;
};

// Returns the augmentation of the data set's images. The data set, which must be that of `config`,
// must outlive the result. Its member `stored` is the shape of the images in a batch of form BYTES.
// That is the common shape of all stored images. If they differ in shape, or if crops are resized,
// it is Dataset::batchShape().
Augmenter augmenterOf(const Dataset& dataset, const DataConfig& config);

// Whether batches can have the form BYTES. False if the augmentation needs whole images in floats
// (Augmenter::finishes()). Also false if images differ in shape and a crop may not consist of bytes
// (Augmenter::canCut()). If images differ in shape, or if crops are resized, the readers crop the
// images, and only mirroring is left to the caller.
bool canReadBytes(const Dataset& dataset, const Augmenter& augmenter);

// The images of one step. Valid until the next call of Batcher::next().
struct Batch {
  uint64_t step;
  // One of `pixels` and `bytes`, or neither, depending on the form. N = batchSize.
  kj::ArrayPtr<const float> pixels;  // N×C×H×W; 0 in rows that do not count
  // N×C×H×W of augmenterOf().stored; undefined in rows that do not count
  kj::ArrayPtr<const kj::byte> bytes;
  kj::ArrayPtr<const uint64_t> records;            // N: their numbers; 0 in rows that do not count
  kj::ArrayPtr<const Augmentation> augmentations;  // N: for the caller to apply; empty for PIXELS
  kj::ArrayPtr<const int32_t> labels;  // N; -1 in rows that do not count, which come last
  uint images;                         // rows that count: always N in training
  // N: the number that a row's dropout is drawn from, a function of (seed, pass, record). 0 in rows
  // that do not count, and in validation.
  kj::ArrayPtr<const uint64_t> draws;
  // In validation: the number of views of each image, the weight of this one, and whether it is the
  // last one. In training: 1, 1 and true.
  uint views;
  float weight;
  bool isLastView;
};

// Counts over the batches that were handed out so far.
struct BatcherCounts {
  uint64_t badRecords = 0;  // how often a bad record was skipped
  uint64_t waited_ns = 0;   // time for which next() waited for readers
  uint threads = 0;  // present number of reader threads; 0 if next() reads the batches itself
};

// Reads, decodes and augments ahead, on `readerThreads` threads, into a ring of preallocated
// batches. With `addsReaders`, training takes more threads while that helps (see ReaderBalance). If
// the system can start only some of the threads, these do the work. With readerThreads = 0, next()
// reads the batch itself. One thread calls all methods. The content of a batch never depends on the
// number of threads or on timing. The destructor waits only for the images that are being read.
//
// With on_bad_record = "skip", in training the next good record of the same batch takes the place
// of a bad one (the first record follows the last). A batch without any good record is an error. In
// validation a bad record is left out.
class Batcher {
public:
  // Returns the training batches of worker `rank` of `workers`, from `firstStep` on, without end,
  // in the order of its Stream. `dataset` and everything that `form` points to must outlive the
  // batcher.
  static kj::Own<Batcher> training(const Dataset& dataset, const DataConfig& config, uint64_t seed,
      uint workers, uint rank, uint64_t firstStep, BatchForm form = {});
  // Returns the validation batches of this worker's part (or of all records), in order, once per
  // view. After the last batch, next() returns null until restart() or take() is called. Until
  // restart() names other views, these are config.views(false). Of M records, part r of W is those
  // from floor(r·M/W) to before floor((r+1)·M/W). The records are the data set's own validation
  // records, or those held out.
  static kj::Own<Batcher> validation(const Dataset& dataset, const DataConfig& config, uint workers,
      uint rank, BatchForm form = {});

  virtual ~Batcher() noexcept(false) = default;

  // Returns the next batch, and waits for the readers if necessary. If a reader failed (an
  // unreadable database, a bad record under on_bad_record = "fail"), throws it when its batch is
  // due, and at every call after that.
  virtual kj::Maybe<const Batch&> next() = 0;
  // For validation only: starts again from the first batch, with these views. `views` must outlive
  // this object.
  virtual void restart(kj::ArrayPtr<const View> views) = 0;
  // For validation only: begins again with the first batch of part number `part` of `parts`. Does
  // nothing if every worker validates on all records.
  virtual void take(uint part, uint parts) = 0;
  // For training only: continues with step `step`, and reads the records that `division` gives to
  // this worker. Batches that were read ahead are read again.
  virtual void divideBy(kj::Own<const Division> division, uint64_t step) = 0;
  virtual BatcherCounts counts() const = 0;
  // Returns one sentence per record skipped since the last call, with record, database and cause.
  // Of one batch it describes only the first few.
  virtual kj::Array<kj::String> takeReports() = 0;
};

}  // namespace io
