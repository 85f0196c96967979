// rpc/rounds.h: which pushes make an update, when a push is answered, how messages are encoded, and
// who makes the update. Pure.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

#include "rpc/codec/codec.h"
#include "rpc/placement.h"

namespace rpc {

using kj::uint;

// The rule of a mode, which both ends know: its row in the table of modes, with the keys of the
// file and the number of workers filled in.
struct Rounds {
  enum Counted {
    // A round takes one push of every worker, and adds them in rank order.
    ALL,
    // A round takes one push of each of the first `aggregate` workers, if it was computed on the
    // values before the round. Later pushes are dropped and counted (backup workers: Chen et al.
    // 2016, arXiv 1604.00981). A worker that rests counts as a push. Otherwise two workers could
    // wait for each other forever, on two slices.
    FIRST,
    // A round takes any `aggregate` pushes that were computed on the values before it, and adds
    // them as they come. Later pushes are dropped and counted. A push is answered when its round is
    // applied. It is answered immediately if there are fewer workers than `aggregate` or while a
    // worker rests, because then one worker may have to fill a round alone. (This is TensorFlow's
    // SyncReplicasOptimizer, r1.3, without its tokens. Each slice would need separate tokens, so
    // two workers could wait for each other forever.)
    ANY,
    // Each push is a round by itself, as it arrives.
    EACH,
  };

  static constexpr uint64_t UNBOUNDED = kj::maxValue;

  const char* mode = "dist_sync";  // its word in the file, for messages
  Counted counted = ALL;
  uint workers = 1;  // how many may push. Some of them may be missing
  // How many workers the file names, if more may join the job. 0: as many as `workers`.
  uint usual = 0;
  uint aggregate = 1;  // how many pushes fill a round. ALL: `workers`; EACH: 1
  // EACH: a push is answered when no worker is more than this many steps behind the pushing one (Ho
  // et al. 2013). UNBOUNDED: it is answered immediately.
  uint64_t staleness = UNBOUNDED;
  // Whether an update gets the values that its push was computed on (Round::seen). EACH only.
  bool keepsSeen = false;
  // Whether an update gets the number of updates that its push missed (Round::staleness). EACH
  // only.
  bool passesStaleness = false;
  codec::Codec codec = {};

  // Returns how many pushes all workers together make per update.
  uint pushesPerUpdate() const;
  // Returns the divisor of the sum of `pushes` pushes, counted in pushes: the sum is divided by the
  // images of that many pushes. With a bound on staleness, each push has the weight that it has in
  // a synchronous step: 1 / workers.
  uint divisor(uint pushes) const { return isBounded() ? usualWorkers() : pushes; }
  // Weights and limits depend on this number, so that a job does not change because more workers
  // could join it.
  uint usualWorkers() const { return usual > 0 ? usual : workers; }
  // Whether each push becomes part of an update. The values that answer it then contain it.
  bool countsEveryPush() const { return counted == ALL || counted == EACH; }
  bool isBounded() const { return counted == EACH && staleness != UNBOUNDED; }
  // Whether others may wait for a worker that has ended its steps, unless it calls rest().
  bool needsRest() const {
    return workers > 1 && (counted == FIRST || counted == ANY || isBounded());
  }
  // How answers to pushes are encoded.
  codec::Encoding answers() const { return codec.answers(aggregate); }
};

// Returns the mode and the values of its keys. Two ends get the same text only if they count in the
// same way.
kj::String KJ_STRINGIFY(const Rounds& rounds);

// One update of a slice.
struct Round {
  uint64_t number;                        // how many updates the slice had before
  kj::ArrayPtr<const float> gradientSum;  // of the round's pushes, each a sum over a batch
  uint divisor = 1;                       // the sum is divided by the images of this many pushes
  // How many updates were made between the values that the sum was computed on and the current
  // ones, if the mode passes this on; else 0.
  uint64_t staleness = 0;
  // The values that the sum was computed on, if the mode keeps them; else null.
  kj::ArrayPtr<const float> seen = nullptr;
};

// An optimizer and a schedule, as a shard sees them. The program around the shard implements it.
class Updater {
public:
  virtual ~Updater() noexcept(false) = default;

  // Returns how many arrays of state the shard keeps for `slice`. Each has the slice's size, and
  // begins with zeros.
  virtual uint stateArrays(const Slice& slice) const = 0;

  // Updates `slice` once, when a round is full: reads `current` and the round, and writes `next`
  // and `state`. `next` must not overlap `current` or the round's arrays. Called on the shard's
  // thread.
  virtual void update(const Slice& slice, const Round& round, kj::ArrayPtr<const float> current,
      kj::ArrayPtr<float> next, kj::ArrayPtr<float> state) = 0;
};

}  // namespace rpc
