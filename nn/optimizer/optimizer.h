// nn/optimizer/optimizer.h: the update rules: one vectorised loop over a slice.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>

#include "configs/language/reader.h"
#include "nn/network/conventions.h"
#include "nn/network/graph.h"
#include "nn/optimizer/value_rule.h"

namespace nn {

// One update of one slice. All arrays have the slice's length; `next` may not overlap `current`.
struct SliceUpdate {
  kj::ArrayPtr<const float> gradient;  // summed over the images of the round
  float rescale;                       // 1 / images of the round
  kj::ArrayPtr<const float> current;
  kj::ArrayPtr<float> next;
  kj::ArrayPtr<float> state;  // Optimizer::stateArrays() times the length, zero at first
  double learningRate;        // of this update, factors of the key included
  double decay;               // weight decay, factor of the key included
  uint64_t number = 0;        // of this update of the slice, from 0
  // Of the key, for rules that need whole keys: the length is rows · cols then.
  Key::Role role = Key::WEIGHT;
  size_t rows = 0;
  size_t cols = 0;
};

// An update rule. Immutable; any thread.
class Optimizer {
public:
  virtual ~Optimizer() noexcept(false) = default;
  virtual kj::StringPtr name() const = 0;
  // Arrays of state of the slice's length.
  virtual uint stateArrays() const = 0;
  // Whether a slice must be a whole key, because a value's update depends on all others of the key.
  virtual bool needsWholeKeys() const { return false; }
  // Whether it is for weights alone: an update of a key of another role is a bug.
  virtual bool isForWeightsAlone() const { return false; }
  // What `update`, whose arrays are not looked at, does with each value; null if that depends on
  // others of the key.
  virtual kj::Maybe<ValueRule> valueRule(const SliceUpdate& update) const { return nullptr; }
  // The same bits on every machine, whatever its instruction set.
  virtual void apply(SliceUpdate update) const = 0;
  // From the file: before schedule and factors.
  virtual double learningRate() const = 0;
  virtual double weightDecay() const = 0;
};

// [train.optimizer]: a row of OPTIMIZERS ("sgd", "adamw", …); sgd if absent.
kj::Own<const Optimizer> readOptimizer(
    configs::Reader& reader, kj::StringPtr key, const Conventions& conventions);

// The same, but absent = null.
kj::Maybe<kj::Own<const Optimizer>> maybeReadOptimizer(
    configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc, const Conventions& conventions);

}  // namespace nn
