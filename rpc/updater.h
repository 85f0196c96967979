// rpc/updater.h: what a shard calls when a round is full.
#pragma once

#include <kj/array.h>

#include "rpc/placement.h"

namespace rpc {

// An optimizer and a schedule, as a shard sees them: the program around it brings them along.
class Updater {
public:
  virtual ~Updater() noexcept(false) = default;

  // Float arrays of state that the shard keeps for `slice`, each of the slice's size, zero at
  // first.
  virtual uint stateArrays(const Slice& slice) const = 0;

  // Update number `round` (from 0) of `slice`: reads `current` and the summed gradient, writes
  // `next` (never the same memory) and `state`. Called on the shard's thread.
  virtual void update(const Slice& slice, uint64_t round, kj::ArrayPtr<const float> gradientSum,
      kj::ArrayPtr<const float> current, kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) = 0;
};

}  // namespace rpc
