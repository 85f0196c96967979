// runner/roles/shard_saver.h: saves and restores the shard of a role.
#pragma once

#include <kj/async.h>

#include "rpc/shard/shard.h"
#include "runner/roles/membership.h"

namespace runner {

// Runs on the event loop of the shard.
class ShardSaver {
public:
  // `shard` is number `index`, and must outlive it.
  ShardSaver(rpc::Shard& shard, uint index): shard(shard), index(index) {}

  // Restores the shard if the run continues from a checkpoint. Serve the shard only after the
  // promise has resolved. `membership` must outlive this object.
  kj::Promise<void> begin(Membership& membership);
  // Copies the shard, and sends the copy while the job continues. All workers must have stopped at
  // `step`.
  void save(uint64_t step);

private:
  rpc::Shard& shard;
  const uint index;
  kj::Maybe<Membership&> membership;
  uint64_t last_bytes = 0;  // of the last copy
  kj::Promise<void> sending = nullptr;
};

}  // namespace runner
