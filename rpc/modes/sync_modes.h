// rpc/modes/sync_modes.h: local, device, dist_sync and allreduce.
#pragma once

#include "rpc/modes/mode.h"

namespace rpc {

// A round sums a gradient of every worker, or of as many as `aggregate` says, and is one update: by
// the shard, or with `update = "worker"` by every worker with the sum.
kj::Own<const Mode> readSyncMode(const ModeRow& row, configs::Reader& reader);

}  // namespace rpc
