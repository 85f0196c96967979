// rpc/rounds.h: whose pushes make an update, when a push is answered, what travels, and who makes
// the update. Pure.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

#include "rpc/codec/codec.h"
#include "rpc/placement.h"

namespace rpc {

using kj::uint;

// What both ends know of a mode: its columns with the file's keys and the number of workers put in.
struct Rounds {
  enum Counted {
    // One push of every worker, added in rank order.
    ALL,
    // Of each round, those of the first `aggregate` workers that computed on the values before it.
    // What comes later is dropped and counted (backup workers: Chen et al. 2016, arXiv 1604.00981).
    // A worker that rests stands for a push: if rounds waited for as many of the others, two of
    // these could wait for each other for ever, one on one slice and one on another.
    FIRST,
    // `aggregate` pushes, whosever, that computed on the values before it, added as they come. What
    // comes later is dropped and counted. A push is answered when its round is applied; but at once
    // where there are fewer workers than `aggregate`, and while one rests: then who pushes may fill
    // a round alone (TensorFlow's SyncReplicasOptimizer, r1.3, without its tokens: as each slice
    // would have its own, two workers could wait for each other for ever).
    ANY,
    // Each push by itself, as it arrives.
    EACH,
  };

  static constexpr uint64_t UNBOUNDED = kj::maxValue;

  const char* mode = "dist_sync";  // its word in the file, for messages
  Counted counted = ALL;
  uint workers = 1;
  uint aggregate = 1;  // FIRST, ANY
  // EACH: a push is answered when no worker is more than so many steps behind this one (Ho et al.
  // 2013); UNBOUNDED: at once.
  uint64_t staleness = UNBOUNDED;
  // Whether updates are told the values that a push was computed on; EACH only.
  bool keepsSeen = false;
  // Whether updates are told how many updates a push missed; EACH only.
  bool tellsStaleness = false;
  codec::Codec codec = {};

  // Pushes that workers make, all together, in the time of an update.
  uint pushesPerUpdate() const;
  // Pushes whose images an update's sum is divided by, if there are `pushes` in it. With a bound
  // each push has the share of a synchronous step's: 1 / workers of it.
  uint divisor(uint pushes) const { return isBounded() ? workers : pushes; }
  bool isBounded() const { return counted == EACH && staleness != UNBOUNDED; }
  // Whether somebody may wait for workers that have ended their steps, unless these say so.
  bool mustHearOfRest() const { return counted == FIRST || counted == ANY || isBounded(); }
  // How what answers a push is written down.
  codec::Encoding answers() const { return codec.answers(aggregate); }
};

// The mode and what its keys say: the same for two ends only if they count alike.
kj::String KJ_STRINGIFY(const Rounds& rounds);

// One update of a slice.
struct Round {
  uint64_t number;                        // how many updates the slice had before
  kj::ArrayPtr<const float> gradientSum;  // of the round's pushes, each a sum over a batch
  uint divisor = 1;                       // pushes whose images the sum is divided by
  // How many updates came between the values that the sum was computed on and the current ones, if
  // the mode tells it; else 0.
  uint64_t staleness = 0;
  kj::ArrayPtr<const float> seen =
      nullptr;  // the values it was computed on, if the mode keeps them
};

// An optimizer and a schedule, as a shard sees them. The program around the shard brings it along.
class Updater {
public:
  virtual ~Updater() noexcept(false) = default;

  // Returns how many arrays of state the shard keeps for `slice`. Each has the slice's size, and
  // begins with zeros.
  virtual uint stateArrays(const Slice& slice) const = 0;

  // Updates `slice` once, when a round is full: reads `current` and the round, and writes `next`
  // and `state`. `next` shares no memory with what is read. Called on the shard's thread.
  virtual void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) = 0;
};

}  // namespace rpc
