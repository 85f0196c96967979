// rpc/shard/waiting.h: who waits for the progress of a shard's slices.
#pragma once

#include <kj/array.h>
#include <kj/refcount.h>
#include <kj/vector.h>

#include "rpc/placement.h"
#include "rpc/trace.h"

namespace rpc {

// Somebody who waits. Lives at least as long as it does.
class Waiter: public kj::Refcounted {
public:
  // What was waited for of slice `id` is there. Must not throw, nor touch the list of waiters.
  virtual void reach(SliceId id) = 0;
};

// All waiters of one shard; see Shard::progress(). One thread.
class Waiting {
public:
  // `slices` are those of the whole placement.
  explicit Waiting(size_t slices, kj::Maybe<ShardTrace&> trace = nullptr)
      : entries(kj::heapArray<kj::Vector<Entry>>(slices)), trace(trace) {}

  // `waiter` waits for slice `id` to reach `progress`.
  void add(Waiter& waiter, SliceId id, uint64_t progress) {
    entries[id].add(Entry{progress, kj::addRef(waiter)});
  }

  // Slice `id` has reached `progress`.
  void reached(SliceId id, uint64_t progress) {
    KJ_IF_MAYBE(t, trace) t->reached(id, progress);
    auto& list = entries[id];
    size_t kept = 0;
    for (auto& entry: list) {
      if (entry.progress <= progress) {
        entry.waiter->reach(id);
      } else {
        auto stays = kj::mv(entry);
        list[kept++] = kj::mv(stays);
      }
    }
    list.truncate(kept);
  }

private:
  struct Entry {
    uint64_t progress;
    kj::Own<Waiter> waiter;
  };
  kj::Array<kj::Vector<Entry>> entries;
  kj::Maybe<ShardTrace&> trace;
};

}  // namespace rpc
