// nn/optimizer/optimizer.h: optimizers, which update slices.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>

#include "configs/language/reader.h"
#include "nn/network/conventions.h"
#include "nn/network/graph.h"
#include "nn/optimizer/value_rule.h"

namespace nn {

// One update of one slice. All arrays have the length of the slice. `next` must not overlap
// `current`.
struct SliceUpdate {
  kj::ArrayPtr<const float> gradient;  // summed over the images of the round
  float rescale;                       // 1 / images of the round
  kj::ArrayPtr<const float> current;
  kj::ArrayPtr<float> next;
  kj::ArrayPtr<float> state;  // Optimizer::stateArrays() times the length, zero at first
  double learningRate;        // of this update, factors of the key included
  double decay;               // weight decay, factor of the key included
  uint64_t number = 0;        // of this update of the slice, from 0
  // Of the key, for optimizers that need whole keys. The length is then rows · cols.
  Key::Role role = Key::WEIGHT;
  size_t rows = 0;
  size_t cols = 0;
};

// Updates slices by one formula. Immutable; any thread.
class Optimizer {
public:
  virtual ~Optimizer() noexcept(false) = default;
  virtual kj::StringPtr name() const = 0;
  // How many arrays of state it needs, each of the slice's length.
  virtual uint stateArrays() const = 0;
  // Whether a slice must be a whole key, because the update of a value depends on the whole key.
  virtual bool needsWholeKeys() const { return false; }
  // Whether it can update weights only. The caller must not give it keys of another role.
  virtual bool isForWeightsAlone() const { return false; }
  // Returns the rule by which `update` changes each value. Does not read the arrays of `update`.
  // Null if the update of a value depends on other values of the key.
  virtual kj::Maybe<ValueRule> valueRule(const SliceUpdate& update) const { return nullptr; }
  // Makes the update. By default it follows valueRule(); other classes override this function.
  // Computes the same bits on every instruction set.
  virtual void apply(SliceUpdate update) const;
  // As the file gives them, without schedule and factors.
  virtual double learningRate() const = 0;
  virtual double weightDecay() const = 0;
};

// Reads [train.optimizer], a row of OPTIMIZERS ("sgd", "adamw", …). Returns sgd if it is absent.
kj::Own<const Optimizer> readOptimizer(
    configs::Reader& reader, kj::StringPtr key, const Conventions& conventions);

// Does the same, but returns null if it is absent.
kj::Maybe<kj::Own<const Optimizer>> maybeReadOptimizer(
    configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc, const Conventions& conventions);

}  // namespace nn
