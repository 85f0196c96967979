// runner/experiment/train_config.h: the [train] section: how long to train, and how parameters are
// updated.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "nn/network/conventions.h"
#include "nn/optimizer/update_rules.h"
#include "nn/program.h"

namespace runner {

using kj::uint;

// Whether the loss of a batch is the mean or the sum over its images.
struct LossReduction {
  const char* name;
  const char* doc;
  enum Word { MEAN, SUM } word;
};

// [train] early_stop: ends a run that no longer improves.
struct EarlyStop {
  uint patience;  // epochs without a better validation accuracy after which the run ends

  static EarlyStop read(configs::Reader& reader);
};

// [train] ema: a moving average of the weights.
struct WeightAverageConfig {
  double decay;  // the share of the old average that remains after each step

  static WeightAverageConfig read(configs::Reader& reader);
};

// [train]
struct TrainConfig {
  // The run ends at the earlier of the two. At least one of them is set.
  kj::Maybe<uint> epochs;     // passes over the training records
  kj::Maybe<uint64_t> steps;  // updates of the whole job
  uint64_t seed;
  nn::UpdateRules rules;
  const LossReduction* loss;
  double labelSmoothing;
  nn::Precision precision;
  configs::Span precisionSpan;  // of precision's value, or of [train] if the key is absent
  double lossScale;             // for FP16
  bool deterministic;
  kj::Maybe<EarlyStop> earlyStop;          // null: the run makes all its epochs
  kj::Maybe<WeightAverageConfig> average;  // null: no average is kept

  static TrainConfig read(configs::Reader& reader, const nn::Conventions& conventions);
};

// Returns the word of `train.precision`.
kj::StringPtr wordOf(nn::Precision precision);

}  // namespace runner
