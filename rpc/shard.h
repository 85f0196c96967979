// rpc/shard.h: one server's share of the parameters: sums pushes, updates, lends out values.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/vector.h>

#include "rpc/modes.h"
#include "rpc/placement.h"
#include "rpc/updater.h"

namespace rpc {

// The parameter server without the network: values in, values out, on one thread, without
// clock or lock.
//
// ShardServer puts Cap'n Proto around it; LocalStore calls it directly. That both run this very
// class is why a local run and a distributed one agree to the last bit.
//
// Wrong arguments (an unknown slice or rank, a wrong size, a step out of turn) throw FAILED and
// change nothing.
//
// Memory, for each value of the shard: two buffers of values and, if a round has several pushes,
// one sum; the updater's state. In a mode where a worker may fall behind others, up to workers + 1
// buffers of values, each made when it is first needed.
class Shard {
public:
  // The slices of shard `shard`. `placement` and `updater` must outlive it.
  Shard(const Placement& placement, uint shard, const Mode& mode, uint workers, Updater& updater);
  KJ_DISALLOW_COPY(Shard);

  // The first values of slice `id`: version 0. Once a slice.
  void initialize(SliceId id, kj::ArrayPtr<const float> values);
  // Throws what initialize() with the same arguments would throw, and changes nothing: for callers
  // that do several slices or none.
  void checkInitialize(SliceId id, kj::ArrayPtr<const float> values) const;
  // Whether all slices have their first values.
  bool isInitialized() const;

  // Counts worker `rank`'s gradient of slice `id` for `step` (from 0; float32, as many as the slice
  // has, summed over the worker's batch), and runs the updater when the round is full. Gradients
  // are added in rank order whatever order they arrive in, so the sum is the same to the last bit.
  // A step that this worker pushed before is not counted again. Returns the version that answers
  // this push; it is there already if the push filled its round.
  //
  // The gradient is not copied: one that came before its turn must stay in place until that version
  // is there.
  uint64_t push(uint rank, SliceId id, uint64_t step, kj::ArrayPtr<const float> gradient);
  // As checkInitialize(), for push().
  void checkPush(uint rank, SliceId id, uint64_t step, kj::ArrayPtr<const float> gradient) const;

  // Rounds applied to slice `id`; null before initialize().
  kj::Maybe<uint64_t> version(SliceId id) const;

  struct Lent {
    uint64_t version;
    kj::ArrayPtr<const float> values;  // aligned to 8 bytes
  };

  // The newest values of an initialized slice, lent to worker `rank`: they do not change until this
  // rank pushes or borrows the slice again. The updater meanwhile writes other buffers.
  Lent lend(uint rank, SliceId id);

private:
  struct Buffer {
    kj::Array<float> values;
    uint borrowers = 0;
  };

  struct Piece {
    const Slice* slice;
    bool initialized = false;
    uint64_t version = 0;
    kj::Vector<Buffer> buffers;
    uint current = 0;              // index of the newest values
    kj::Array<uint> lentTo;        // each rank's buffer, or NONE
    kj::Array<float> state;        // the updater's
    kj::Array<uint64_t> nextStep;  // each rank's; says who has pushed in this round
    // The round in progress, if it has several pushes: the sum of the ranks below `added`, and what
    // came too early.
    kj::Array<float> sum;
    uint added = 0;
    kj::Array<kj::ArrayPtr<const float>> early;
  };

  Piece& find(SliceId id);
  const Piece& find(SliceId id) const;
  void addInOrder(Piece& piece, uint rank, kj::ArrayPtr<const float> gradient);
  void apply(Piece& piece, kj::ArrayPtr<const float> gradientSum);
  void giveBack(Piece& piece, uint rank);

  Updater& updater;
  uint workers;
  uint roundSize;  // pushes that make a round: `workers`, or 1
  kj::Array<Piece> pieces;
  kj::Array<uint> pieceOf;  // of each slice of the placement; NONE for those of other shards
  uint uninitialized;       // pieces without values
};

}  // namespace rpc
