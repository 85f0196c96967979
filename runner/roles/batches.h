// runner/roles/batches.h: a worker's batches, on their way from the readers to its program.
#pragma once

#include "io/batches/batcher.h"
#include "nn/program.h"

namespace runner {

using kj::uint;

// Hands pixels to the program that the readers augmented, or raw batches to a program that takes
// them. A raw batch lies in memory of the program, or has no images if the device keeps the data
// set. The same numbers reach the network in each case. Called by one thread.
class Batches {
public:
  // Makes the batches of worker `rank`; see io::Batcher. All arguments must outlive it. If
  // config.cache is DEVICE, reads all images, and throws if they cannot be kept: if they differ
  // in shape, if one is bad, or if they do not fit.
  Batches(nn::Program& program, const io::Dataset& dataset, const io::DataConfig& config,
      uint64_t seed, uint workers, uint rank);
  KJ_DISALLOW_COPY(Batches);

  // Whether the next batch may be set before the backward pass of this one.
  bool mayBeAhead() const { return raw != nullptr; }
  // Returns the next batch of training, or of validation: null after its last. A batch is valid
  // until the next call of either function.
  const io::Batch& readTraining();
  kj::Maybe<const io::Batch&> readValidation();
  // Makes the batch that was read last the program's batch.
  void set();

  io::Batcher& ofTraining() { return *training; }
  io::Batcher& ofValidation() { return *validation; }

private:
  io::BatchForm newForm(kj::ArrayPtr<const int32_t> labels);
  void takeRaw(const io::Dataset& dataset, const io::DataConfig& config);
  void keep(const io::Dataset& dataset, io::ImageShape shape, bool validates);
  kj::Maybe<const io::Batch&> read(io::Batcher& from, uint64_t first);

  nn::Program& program;
  kj::Maybe<nn::RawInput&> raw;
  // Of all records, where they are kept: training's, then validation's.
  bool keeps = false;
  kj::Array<int32_t> trainingLabels;
  kj::Array<int32_t> validationLabels;
  uint64_t firstOfValidation = 0;
  kj::Own<io::Batcher> training;  // younger than what their forms point to
  kj::Own<io::Batcher> validation;

  // What was read last, and the number of the first of its records where images are kept.
  kj::Maybe<const io::Batch&> last;
  uint64_t firstNumber = 0;
  kj::Array<nn::RawRow> rows;  // of that batch, as the program takes them
};

// Returns what a program needs to augment as `augmenter` does. It points to memory of `augmenter`.
nn::RawImages rawImagesOf(const io::Augmenter& augmenter);

// Bytes of the images that `config` keeps on each device of a worker; 0 if none.
uint64_t kept_bytes(const io::DataConfig& config, const io::DatasetFacts& facts);

}  // namespace runner
