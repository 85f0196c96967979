// rpc/shard/updater.h: what a shard calls when a round is full.
#pragma once

#include <kj/array.h>

#include "rpc/placement.h"

namespace rpc {

// What an update of a slice is of.
struct Round {
  uint64_t number;                        // of the slice's updates, from 0
  kj::ArrayPtr<const float> gradientSum;  // of its pushes, each a sum over a batch
  uint divisor = 1;                       // pushes whose images the sum is divided by
  // Updates between the values that the sum was computed on and those of now, if the mode tells
  // them; else 0.
  uint64_t staleness = 0;
  kj::ArrayPtr<const float> seen = nullptr;  // those values, if the mode keeps them
};

// An optimizer and a schedule, as a shard sees them: the program around it brings them along.
class Updater {
public:
  virtual ~Updater() noexcept(false) = default;

  // Float arrays of state that the shard keeps for `slice`, each of the slice's size, zero at
  // first.
  virtual uint stateArrays(const Slice& slice) const = 0;

  // One update of `slice`: reads `current` and the round, writes `next` (never the same memory as
  // either) and `state`. Called on the shard's thread.
  virtual void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) = 0;
};

}  // namespace rpc
