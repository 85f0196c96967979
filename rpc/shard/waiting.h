// rpc/shard/waiting.h: keeps track of the calls that wait for the progress of a shard's slices.
#pragma once

#include <kj/array.h>
#include <kj/refcount.h>
#include <kj/vector.h>

#include "rpc/placement.h"
#include "rpc/trace.h"

namespace rpc {

// An object that waits for slices of a shard.
class Waiter: public kj::Refcounted {
public:
  // Slice `id` has made the awaited progress. Must not throw, and must not call Waiting.
  virtual void reach(SliceId id) = 0;
};

// All waiters of one shard, with the Shard::progress() that each of them waits for. For one thread.
class Waiting {
public:
  // `slices` is the number of slices in the whole placement. `trace` must outlive this.
  explicit Waiting(size_t slices, kj::Maybe<ShardTrace&> trace = nullptr)
      : waits(kj::heapArray<kj::Vector<Wait>>(slices)), trace(trace) {}

  // `waiter` waits until slice `id` has reached `progress`. It lives at least until then.
  void add(Waiter& waiter, SliceId id, uint64_t progress) {
    waits[id].add(Wait{progress, kj::addRef(waiter)});
  }

  // Slice `id` has reached `progress`: calls its waiters.
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
