// rpc/shard/shard.h: one server's share of the parameters: sums pushes, updates, and lends out
// values.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/function.h>
#include <kj/vector.h>

#include "configs/language/state_visitor.h"
#include "rpc/codec/encoding.h"
#include "rpc/placement.h"
#include "rpc/rounds.h"

namespace rpc {

// Returns memory in which a Shard keeps one version of a slice's values: zeros, aligned to 8 bytes.
// `buffer` counts the slice's memories from 0.
using ValueMemory = kj::Function<kj::Array<float>(SliceId id, uint buffer)>;

// The parameter server without the network: values in, values out, on one thread, without clock or
// lock.
//
// ShardServer puts Cap'n Proto around it, and LocalStore calls it directly. Because both run this
// class, a local run and a distributed one agree to the last bit.
//
// Wrong arguments (an unknown slice or rank, a wrong size, a step out of turn) throw FAILED and
// change nothing.
//
// Memory per value of the shard:
// - two buffers of values. If a worker may fall behind others, up to workers + 1 of them, and one
//   more if updates get the values that pushes were computed on. Each is made when first needed.
// - one sum, if a round has several pushes or if pushes are decoded.
// - the updater's state.
class Shard {
public:
  // Holds the slices of shard `shard`. `placement` and `updater` must outlive it. Values are kept
  // in the memory that `memory` returns, by default on the heap.
  Shard(const Placement& placement, uint shard, const Rounds& rounds, Updater& updater,
      kj::Maybe<ValueMemory> memory = nullptr);
  KJ_DISALLOW_COPY(Shard);

  // Sets the first values of slice `id`, its version 0. Rank 0 sends them, once per slice. A
  // repeated call with the same values before the first round changes nothing.
  void initialize(SliceId id, kj::ArrayPtr<const float> values);
  // Throws the exception that initialize() with the same arguments would throw, and changes
  // nothing. For callers that initialize either all slices of a call or none.
  void checkInitialize(SliceId id, kj::ArrayPtr<const float> values) const;
  // Whether all slices have their first values.
  bool isInitialized() const;

  // Counts worker `rank`'s gradient of slice `id` for the worker's step `step` (from 0), summed
  // over the worker's batch. Runs the updater when the round is full. If a round takes the
  // gradients of all workers, it adds them in rank order whatever order they arrive in. Therefore
  // the sum is the same to the last bit. A step that this worker pushed before is not counted
  // again.
  //
  // Returns the progress() that answers this push. That progress is reached already if the push was
  // dropped, or if it filled its round and there is no bound on staleness. The gradient is not
  // copied, so it must stay in place until the progress is reached.
  uint64_t push(uint rank, SliceId id, uint64_t step, const codec::Coded& gradient);
  // Throws the exception that push() with the same arguments would throw, and changes nothing.
  void checkPush(uint rank, SliceId id, uint64_t step, const codec::Coded& gradient) const;

  // Worker `rank` pushes nothing more until all workers rest, at the end of an epoch or of its run.
  // All its pushes must have been answered. From now on no round waits for it. When the last worker
  // rests, rounds wait for all workers again. May advance the progress of every slice. `number` is
  // how often the worker has rested before. A repeated call has no effect.
  void rest(uint rank, uint64_t number);

  // The members of a job may change if a round takes a push of every worker (Rounds::ALL), or if
  // each push is a round (Rounds::EACH). In other modes, fence() and leave() throw FAILED. At
  // first, all ranks are members.
  //
  // Worker `rank` was lost: refuses any further calls from it. Its pushes stay in their rounds.
  // Rounds that lack its push still wait. A repeated call has no effect.
  void fence(uint rank);
  // How far the pushes of one worker went in one slice.
  struct SliceSteps {
    SliceId id;
    uint64_t steps;  // how many steps the worker has pushed
  };
  // Returns how many steps `rank` has pushed of each slice of this shard.
  kj::Array<SliceSteps> pushedBy(uint rank) const;
  // Fences `rank`, and no longer waits for it. Rounds close without it: a sum is divided by the
  // images of the workers that have pushed. May advance the progress of every slice. Throws FAILED
  // if all others have left. A repeated call has no effect.
  void leave(uint rank);
  // Worker `rank`, which is not a member, becomes one: rounds from step `step` on wait for it. All
  // other workers must have stopped at that step, with all pushes answered.
  void admit(uint rank, uint64_t step);
  bool isMember(uint rank) const { return memberships[rank] == Membership::MEMBER; }
  // Throws DISCONNECTED if worker `rank` is not a member. push() and lend() do the same.
  void requireMember(uint rank) const;

  // Throws unless this shard has slice `id`. All calls with a slice do the same.
  void requireSlice(SliceId id) const;

  // Returns how many rounds were applied to slice `id`. Null before initialize().
  kj::Maybe<uint64_t> version(SliceId id) const;
  // Returns the number that answers for an initialized slice wait for. It never falls while a push
  // waits. Usually it is the number of applied rounds, plus one while pushes of the round in
  // progress are already answered. With a bound on staleness it is the number of steps that the
  // slowest worker has pushed. Workers that rest or have left do not count.
  uint64_t progress(SliceId id) const;

  // Values that are lent to a worker.
  struct Lent {
    uint64_t version;
    kj::ArrayPtr<const float> values;  // aligned to 8 bytes
    uint buffer;                       // the buffer with the values: see ValueMemory
  };

  // Lends the newest values of an initialized slice to worker `rank`. They do not change until this
  // rank pushes or borrows the slice again. Meanwhile the updater writes other buffers.
  Lent lend(uint rank, SliceId id);

  // Pushes so far, summed over slices.
  struct Counts {
    static constexpr uint STALENESS_MAX = 63;

    uint64_t pushed = 0;   // without repeats
    uint64_t dropped = 0;  // pushes that came after their round
    // Entry i counts the applied pushes with i updates between the values that they were computed
    // on and those that they changed. The last entry counts all with STALENESS_MAX or more.
    uint64_t staleness[STALENESS_MAX + 1] = {};
  };
  const Counts& counts() const { return counted; }

  // Visits all state that the shard keeps from round to round: values, the updater's state,
  // versions and counts. Requires that all members have pushed the same number of steps, that every
  // push was answered, and that no round waits for more pushes, except rounds of ANY. Lent values
  // are not saved: a worker that continues after a restore first asks for the newest values.
  void visitState(configs::StateVisitor& visitor);
  // Restores the state that visitState() of a shard with equal slices and rounds has saved. Call it
  // in place of initialize().
  void restore(configs::StateVisitor& visitor);

private:
  struct Buffer {
    kj::Array<float> values;
    uint borrowers = 0;
  };

  // A shard's record of one worker and one slice.
  struct WorkerState {
    uint lent;           // index of the buffer that it borrows, or NONE
    uint64_t seen = 0;   // the version that it was lent last
    uint64_t steps = 0;  // how many it has pushed
    uint64_t due = 0;    // the progress that answers its last push
    // Its gradient in the round in progress, if the round still waits for others.
    kj::Maybe<codec::Coded> gradient;
  };

  // A slice of this shard.
  struct HeldSlice {
    const Slice* slice;
    bool initialized = false;
    uint64_t version = 0;
    kj::Vector<Buffer> buffers;
    uint current = 0;        // index of the newest values
    kj::Array<float> state;  // the updater's
    kj::Array<WorkerState> workers;
    kj::Array<float> sum;  // of pushes; made when first needed
    uint pushes = 0;       // in the round in progress
    uint ofLeavers = 0;    // how many of `pushes` are of former members
  };
  enum class Membership : uint8_t { MEMBER, FENCED, OUTSIDE };

  void visitCounts(configs::StateVisitor& visitor);
  void requireRank(uint rank) const;
  HeldSlice& find(SliceId id);
  const HeldSlice& find(SliceId id) const;
  uint64_t count(HeldSlice& held, uint rank, const codec::Coded& gradient);
  uint64_t progress(const HeldSlice& held) const;
  uint64_t slowest(const HeldSlice& held) const;
  uint pushesNeeded(const HeldSlice& held) const;
  void closeRoundIfFull(HeldSlice& held);
  void addAsItCame(HeldSlice& held, const codec::Coded& gradient);
  void apply(HeldSlice& held, const Round& round, uint64_t staleness = 0);
  void addBuffer(HeldSlice& held);
  void giveBack(HeldSlice& held, WorkerState& worker);
  bool endRestIfAll();

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
  kj::Array<Membership> memberships;  // each rank's
  uint outside = 0;                   // ranks that are not members
  Counts counted;
};

}  // namespace rpc
