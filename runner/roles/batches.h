// runner/roles/batches.h: a worker's batches, on their way from the readers to its program.
#pragma once

#include "io/batches/batcher.h"
#include "nn/program.h"

namespace runner {

using kj::uint;

// Pixels augmented by the readers, or raw batches to a program that takes them: in memory that it
// gives, or where the data set is kept on its device, none at all. Each time the same numbers reach
// the network. Called by one thread.
class Batches {
public:
  // Of worker `rank`; see io::Batcher. All must outlive it. Where config.cache says so, all images
  // are read here. Throws if they cannot be kept: they differ in shape, one is bad, they take more
  // than there is.
  Batches(nn::Program& program, const io::Dataset& dataset, const io::DataConfig& config,
      uint64_t seed, uint workers, uint rank);
  KJ_DISALLOW_COPY(Batches);

  // Whether the next batch may be set before the step with this one has gone backward.
  bool mayBeAhead() const { return raw != nullptr; }
  // The next batch of training; of validation, null behind its last. Valid until the next call of
  // either.
  const io::Batch& readTraining();
  kj::Maybe<const io::Batch&> readValidation();
  // Sets what was read last as the program's batch.
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

// Bytes of the images that `config` keeps on each device of a worker; 0 if none.
uint64_t kept_bytes(const io::DataConfig& config, const io::DatasetFacts& facts);

}  // namespace runner
