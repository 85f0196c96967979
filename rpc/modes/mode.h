// rpc/modes/mode.h: the interface of kvstore modes. The rest of the program calls these functions,
// and never asks which mode is in use.
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

// Who holds the shards: the only worker, which calls its shard directly; server processes; or the
// workers, one shard each.
enum class Shards { IN_WORKER, IN_SERVERS, IN_EVERY_WORKER };

class Mode;

// A row of the table of modes. docs/modes has a page for each.
struct ModeRow {
  const char* name;  // local, device, dist_sync, …
  const char* doc;
  Shards shards;
  // Whether a worker may have several devices. It adds their gradients in the order of the devices
  // before a push.
  bool severalDevices;
  // The keys of [kvstore] that this mode has and some other modes lack.
  kj::ArrayPtr<const kj::StringPtr> keys;
  // Reads these keys. For the manual (Reader::isManual()), reads the keys of all rows that have the
  // same function.
  kj::Own<const Mode> (*read)(const ModeRow& row, configs::Reader& reader);

  bool has(kj::StringPtr key) const;
};

// The arguments of a worker's store. All of them must outlive the store. RemoteStore says more
// about the arrays.
struct WorkerSetup {
  const Placement& placement;
  Rounds rounds;
  uint rank;
  Updater& optimizer;  // for updates that the worker makes itself
  kj::ArrayPtr<float> parameters;
  kj::ArrayPtr<const float> gradients;
  kj::Maybe<SharedMemory&> memory;  // for pushed values, if servers may share it
};

// Describes updates that workers make instead of shards, for messages.
struct OwnUpdates {
  kj::StringPtr where;  // a sentence: "every worker updates all parameters, on its host"
  kj::StringPtr with;   // "with the sums" or "with its own gradients"
};

// A row of the table with the keys of an experiment filled in. Immutable; any thread.
class Mode {
public:
  explicit Mode(const ModeRow& row): row(row) {}
  virtual ~Mode() noexcept(false) = default;
  KJ_DISALLOW_COPY(Mode);

  const ModeRow& row;

  // Returns the rule by which the pushes of `workers` workers become updates of a shard. Of the
  // returned codec, only `answersSums` is set.
  virtual Rounds rounds(uint workers) const = 0;
  // Returns how many steps all workers together make per update of the optimizer.
  virtual uint stepsPerUpdate(uint workers) const { return rounds(workers).pushesPerUpdate(); }
  // Returns how many steps a worker makes by itself before it pushes the change of its values. Null
  // if it pushes the gradient of every step.
  virtual kj::Maybe<uint> stepsAlone() const { return nullptr; }

  // Makes the store of one worker. By default, it pushes each gradient to the shards and uses their
  // answers as parameters.
  virtual kj::Own<KvStore> newStore(WorkerSetup setup) const;
  // Makes the updater of the shards on one thread. By default it is `optimizer`, which the
  // experiment chose. The sum of one push divided by `imagesPerPush` is a mean.
  virtual kj::Own<Updater> newShardUpdater(
      kj::Own<Updater> optimizer, uint64_t imagesPerPush, uint workers) const;
  // Describes the updates that workers make. Null if the shards make the optimizer's updates.
  virtual kj::Maybe<OwnUpdates> ownUpdates() const { return nullptr; }

  // Reports keys that are wrong for this number of workers. `reader` reads the whole file.
  virtual void check(configs::Reader& reader, uint workers) const {}
};

}  // namespace rpc
