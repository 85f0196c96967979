// rpc/modes/mode.h: what a kvstore mode decides. The rest of the program asks it, and never which
// mode it is.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "rpc/placement.h"
#include "rpc/rounds.h"
#include "rpc/shared_memory/shared_memory.h"
#include "rpc/store/kv_store.h"

namespace configs {
class Reader;
}

namespace rpc {

// Who holds the shards of a mode: its only worker, which calls its shard directly; server
// processes; or every worker one of them.
enum class Shards { IN_WORKER, IN_SERVERS, IN_EVERY_WORKER };

class Mode;

// A row of the table of modes. docs/modes has a page for each.
struct ModeRow {
  const char* name;  // local, device, dist_sync, …
  const char* doc;
  Shards shards;
  // Whether a worker may have several devices, whose gradients it adds in their order before a
  // push.
  bool severalDevices;
  // The mode's own keys in [kvstore], which modes that do not name them do not have.
  kj::ArrayPtr<const kj::StringPtr> keys;
  // Reads these keys. In a manual it reads those of all rows with the same function.
  kj::Own<const Mode> (*read)(const ModeRow& row, configs::Reader& reader);

  bool has(kj::StringPtr key) const;
};

// What a worker brings along for its store. All must outlive the store; see RemoteStore about the
// arrays.
struct WorkerSetup {
  const Placement& placement;
  Rounds rounds;
  uint rank;
  Updater& optimizer;  // the worker's own, for updates that run in it
  kj::ArrayPtr<float> parameters;
  kj::ArrayPtr<const float> gradients;
  kj::Maybe<SharedMemory&> memory;  // where lies what the worker pushes
};

// What updates in a worker, rather than in a shard, are like: for messages.
struct OwnUpdates {
  kj::StringPtr where;  // a sentence
  kj::StringPtr with;   // with the sums, with its own gradients
};

// One row with the keys of an experiment. Immutable; any thread.
class Mode {
public:
  explicit Mode(const ModeRow& row): row(row) {}
  virtual ~Mode() noexcept(false) = default;
  KJ_DISALLOW_COPY(Mode);

  const ModeRow& row;

  // When pushes of so many workers become updates of a shard. The codec of the answer only says
  // whether answers are sums.
  virtual Rounds rounds(uint workers) const = 0;
  // Steps of workers, all together, in the time of one update by the optimizer.
  virtual uint stepsPerUpdate(uint workers) const { return rounds(workers).pushesPerUpdate(); }
  // Steps that a worker makes by itself before it pushes by how much they changed its values; null:
  // it pushes the gradient of every step.
  virtual kj::Maybe<uint> stepsAlone() const { return nullptr; }

  // The store of one worker. By default it pushes each gradient to the shards and takes over what
  // they answer.
  virtual kj::Own<KvStore> newStore(WorkerSetup setup) const;
  // What the shards of one thread do with a round. By default: one update by `optimizer`, the
  // experiment's own. `imagesPerPush`: what the sum of one push is divided by to be a mean.
  virtual kj::Own<Updater> newShardUpdater(
      kj::Own<Updater> optimizer, uint64_t imagesPerPush, uint workers) const;
  // Null if the shards make the optimizer's updates.
  virtual kj::Maybe<OwnUpdates> ownUpdates() const { return nullptr; }

  // Reports what does not go with so many workers. `reader` is that of the whole file.
  virtual void check(configs::Reader& reader, uint workers) const {}
};

}  // namespace rpc
