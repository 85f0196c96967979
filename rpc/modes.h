// rpc/modes.h: the closed table of kvstore modes: what makes a round, and who runs the shards.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "rpc/placement.h"

namespace configs {
class Reader;
}

namespace rpc {

// A row: what a mode is.
struct Mode {
  const char* name;  // local, device, dist_sync, dist_async
  const char* doc;
  // Whether the job has server processes; without, the worker calls its Shard directly.
  bool hasServers;
  // Workers whose pushes make a round: all of them, or one.
  enum Round { ALL_WORKERS, EACH_PUSH } round;
  // Whether a worker may have several devices, whose gradients it adds in their order before a
  // push.
  bool severalDevices;
};
extern const kj::ArrayPtr<const Mode> MODES;

// Pushes that one update sums: workers, or 1. Images of a round = this times the batch size.
uint pushesPerRound(const Mode& mode, uint workers);

// [kvstore]
struct KvStoreConfig {
  const Mode* mode;
  uint64_t slice_bytes;
  const PlacementRule* placement;

  static KvStoreConfig read(configs::Reader& reader);
};

}  // namespace rpc
