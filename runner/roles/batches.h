// runner/roles/batches.h: passes a worker's batches from the reader threads to its program.
#pragma once

#include <kj/function.h>

#include "io/batches/batcher.h"
#include "nn/program.h"

namespace runner {

using kj::uint;

// A program on CPUs gets pixels that the readers have augmented. A program on GPUs gets raw
// batches: images in memory that the program provides, or only the numbers of the images if the
// data set is kept on its device. In all three cases the same values reach the network. For one
// thread.
class Batches {
public:
  // Makes the batches of worker `rank`, those of training from `firstStep` on: see io::Batcher. All
  // arguments except `kept` must outlive this object. If config.cache asks for it, reads all images
  // here, and calls `kept` after every 16 MiB. Throws if they cannot be kept: they differ in shape,
  // one is bad, or they need more memory than the device has.
  Batches(
      nn::Program& program, const io::Dataset& dataset, const io::DataConfig& config, uint64_t seed,
      uint workers, uint rank, uint64_t firstStep, kj::FunctionParam<void()> kept = []() {});
  KJ_DISALLOW_COPY(Batches);

  // Whether the next batch may be set before the backward pass of this one.
  bool mayBeAhead() const { return raw != nullptr; }
  // Return the next batch of training, and the next one of validation. That of validation is null
  // after the last one. The result is valid until the next call of either function.
  const io::Batch& readTraining();
  kj::Maybe<const io::Batch&> readValidation();
  // Makes the batch that was read last the program's batch.
  void set();
  // Continues with step `step` of training, and reads the records that `division` gives to this
  // worker.
  void divideBy(kj::Own<const io::Division> division, uint64_t step);

  io::Batcher& ofTraining() { return *training; }
  io::Batcher& ofValidation() { return *validation; }

private:
  io::BatchForm newForm(kj::ArrayPtr<const int32_t> labels);
  void takeRaw(
      const io::Dataset& dataset, const io::DataConfig& config, kj::FunctionParam<void()>& kept);
  void keep(const io::Dataset& dataset, io::ImageShape shape, bool validates,
      kj::FunctionParam<void()>& kept);
  kj::Maybe<const io::Batch&> read(io::Batcher& from, uint64_t first);

  nn::Program& program;
  kj::Maybe<nn::RawInput&> raw;
  // If images are kept: the labels of all records. The program keeps those of training first.
  bool keeps = false;
  kj::Array<int32_t> trainingLabels;
  kj::Array<int32_t> validationLabels;
  uint64_t firstOfValidation = 0;
  kj::Own<io::Batcher> training;  // The batchers point to the labels, so they are destroyed first.
  kj::Own<io::Batcher> validation;

  // The batch that was read last, and if images are kept, the number of its first record.
  kj::Maybe<const io::Batch&> last;
  uint64_t firstNumber = 0;
  kj::Array<nn::RawRow> rows;  // the rows of that batch, in the form that the program takes
};

// Returns what a program needs to augment as `augmenter` does. It points to memory of `augmenter`.
nn::RawImages rawImagesOf(const io::Augmenter& augmenter);

// Returns the bytes of the images that `config` keeps on each device of a worker. 0 if it keeps
// none.
uint64_t kept_bytes(const io::DataConfig& config, const io::DatasetFacts& facts);

}  // namespace runner
