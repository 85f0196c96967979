// rpc/shard/shard.h: one server's share of the parameters: sums pushes, updates, lends out values,
// and knows who waits for them.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/function.h>
#include <kj/refcount.h>
#include <kj/vector.h>

#include "rpc/codec/encoding.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/trace.h"

namespace rpc {

// Memory for the values of a slice, in which a Shard keeps one version: zeros, aligned to 8 bytes.
// `buffer` counts from 0, for each slice.
using ValueMemory = kj::Function<kj::Array<float>(SliceId id, uint buffer)>;

// The parameter server without the network: values in, values out, on one thread, without
// clock or lock.
//
// ShardServer puts Cap'n Proto around it; LocalStore calls it directly. That both run this very
// class is why a local run and a distributed one agree to the last bit.
//
// Wrong arguments (an unknown slice or rank, a wrong size, a step out of turn) throw FAILED and
// change nothing.
//
// Memory, for each value of the shard: two buffers of values and, if a round has several pushes or
// these are decoded, one sum; the updater's state. Where a worker may fall behind others, up to
// workers + 1 buffers of values (one more if updates are told what was seen), each made when it is
// first needed.
class Shard {
public:
  // The slices of shard `shard`. `placement` and `updater` must outlive it. Values lie in what
  // `memory` gives, by default on the heap.
  Shard(const Placement& placement, uint shard, const Rounds& rounds, Updater& updater,
      kj::Maybe<ValueMemory> memory = nullptr);
  KJ_DISALLOW_COPY(Shard);

  // The first values of slice `id`, from rank 0: version 0. Once a slice; the same values again,
  // before the first round, change nothing.
  void initialize(SliceId id, kj::ArrayPtr<const float> values);
  // Throws what initialize() with the same arguments would throw, and changes nothing: for callers
  // that do several slices or none.
  void checkInitialize(SliceId id, kj::ArrayPtr<const float> values) const;
  // Whether all slices have their first values.
  bool isInitialized() const;

  // Counts worker `rank`'s gradient of slice `id` for `step` (from 0: the worker's own; as many
  // values as the slice has, summed over the worker's batch), and runs the updater when the round
  // is full. Where all workers' gradients make a round, they are added in rank order whatever order
  // they arrive in, so the sum is the same to the last bit. A step that this worker pushed before
  // is not counted again. Returns the progress() that answers this push; it is there already if the
  // push filled its round.
  //
  // The gradient is not copied: one that came before its turn must stay in place until that
  // progress is there.
  uint64_t push(uint rank, SliceId id, uint64_t step, const codec::Coded& gradient);
  // As checkInitialize(), for push().
  void checkPush(uint rank, SliceId id, uint64_t step, const codec::Coded& gradient) const;

  // Worker `rank` pushes nothing more until all workers rest: at the end of an epoch, or of its
  // run. Its pushes were all answered. Nobody waits for it; when the last one rests, all count
  // again. May advance the progress of every slice. `number`: how often it has rested before; a
  // repeated rest is none.
  void rest(uint rank, uint64_t number);

  // Rounds applied to slice `id`; null before initialize().
  kj::Maybe<uint64_t> version(SliceId id) const;
  // What answers wait for, of an initialized slice; it never falls while a push waits. Rounds
  // applied, as a rule, and one more while pushes of the round in progress are answered, too; with
  // a bound on staleness the steps that every worker has pushed who does not rest.
  uint64_t progress(SliceId id) const;

  struct Lent {
    uint64_t version;
    kj::ArrayPtr<const float> values;  // aligned to 8 bytes
    uint buffer;                       // where they lie: see ValueMemory
  };

  // The newest values of an initialized slice, lent to worker `rank`: they do not change until this
  // rank pushes or borrows the slice again. The updater meanwhile writes other buffers.
  Lent lend(uint rank, SliceId id);

  // Pushes so far, each slice's by itself.
  struct Counts {
    static constexpr uint STALENESS_MAX = 63;

    uint64_t pushed = 0;   // without repeats
    uint64_t dropped = 0;  // of these: those that came after their round
    // Those that were applied, by the updates between what they were computed on and what they
    // changed; the last entry has all of STALENESS_MAX and more.
    uint64_t staleness[STALENESS_MAX + 1] = {};
  };
  const Counts& counts() const { return counted; }

private:
  struct Buffer {
    kj::Array<float> values;
    uint borrowers = 0;
  };

  // What a slice knows of one worker.
  struct WorkerState {
    uint lent;           // index of its buffer, or NONE
    uint64_t seen = 0;   // version of what it was lent last
    uint64_t steps = 0;  // that it has pushed
    uint64_t due = 0;    // progress that answers its last push
    // Its gradient in the round in progress, if that still waits for others.
    kj::Maybe<codec::Coded> gradient;
  };

  struct HeldSlice {
    const Slice* slice;
    bool initialized = false;
    uint64_t version = 0;
    kj::Vector<Buffer> buffers;
    uint current = 0;        // index of the newest values
    kj::Array<float> state;  // the updater's
    kj::Array<WorkerState> workers;
    kj::Array<float> sum;  // of pushes; made when it is first needed
    uint pushes = 0;       // in the round in progress
  };

  HeldSlice& find(SliceId id);
  const HeldSlice& find(SliceId id) const;
  uint64_t count(HeldSlice& held, uint rank, const codec::Coded& gradient);
  uint64_t progress(const HeldSlice& held) const;
  uint64_t slowest(const HeldSlice& held) const;
  uint pushesNeeded() const;
  void closeRoundIfFull(HeldSlice& held);
  void addAsItCame(HeldSlice& held, const codec::Coded& gradient);
  void apply(HeldSlice& held, const Round& round, uint64_t staleness = 0);
  void addBuffer(HeldSlice& held);
  void giveBack(HeldSlice& held, WorkerState& worker);

  const Rounds rounds;
  const kj::ArrayPtr<const Slice> slices;  // of the placement
  Updater& updater;
  kj::Maybe<ValueMemory> memory;
  kj::Array<HeldSlice> heldSlices;
  kj::Array<uint> heldIndex;  // of each slice of the placement; NONE for those of other shards
  uint uninitialized;         // held slices without values
  kj::Array<bool> rests;      // each rank's
  uint resting = 0;           // ranks that rest
  uint64_t rested = 0;        // times that all have rested
  Counts counted;
};

// Somebody who waits for slices of a shard.
class Waiter: public kj::Refcounted {
public:
  // Slice `id` has made the progress that was waited for. Must not throw, nor call Waiting.
  virtual void reach(SliceId id) = 0;
};

// Who waits for which Shard::progress() of one shard. One thread.
class Waiting {
public:
  // `slices` counts those of the whole placement. `trace` must outlive this.
  explicit Waiting(size_t slices, kj::Maybe<ShardTrace&> trace = nullptr)
      : waits(kj::heapArray<kj::Vector<Wait>>(slices)), trace(trace) {}

  // `waiter` waits until slice `id` has reached `progress`. It lives at least until then.
  void add(Waiter& waiter, SliceId id, uint64_t progress) {
    waits[id].add(Wait{progress, kj::addRef(waiter)});
  }

  // Slice `id` has reached `progress`: calls those who waited for it.
  void reached(SliceId id, uint64_t progress) {
    KJ_IF_MAYBE(t, trace) t->reached(id, progress);
    auto& list = waits[id];
    size_t kept = 0;
    for (auto& wait: list) {
      if (wait.progress <= progress) {
        wait.waiter->reach(id);
      } else {
        auto stays = kj::mv(wait);
        list[kept++] = kj::mv(stays);
      }
    }
    list.truncate(kept);
  }

private:
  struct Wait {
    uint64_t progress;
    kj::Own<Waiter> waiter;
  };
  kj::Array<kj::Vector<Wait>> waits;  // per slice
  kj::Maybe<ShardTrace&> trace;
};

}  // namespace rpc
