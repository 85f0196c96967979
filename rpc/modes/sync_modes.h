// rpc/modes/sync_modes.h: the modes local, device, dist_sync and allreduce.
#pragma once

#include "rpc/modes/mode.h"

namespace rpc {

// A round sums one gradient of every worker, or of `aggregate` workers. It is one update, made by
// the shard. With `update = "worker"`, every worker makes the update with the sum.
kj::Own<const Mode> readSyncMode(const ModeRow& row, configs::Reader& reader);

}  // namespace rpc
