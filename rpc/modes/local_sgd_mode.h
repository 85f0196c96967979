// rpc/modes/local_sgd_mode.h: the mode local_sgd.
#pragma once

#include "rpc/modes/mode.h"

namespace rpc {

// A worker makes `local_steps` steps by itself. Then the shards take the mean of all workers'
// values, and continue from it as `outer` says.
kj::Own<const Mode> readLocalSgdMode(const ModeRow& row, configs::Reader& reader);

}  // namespace rpc
