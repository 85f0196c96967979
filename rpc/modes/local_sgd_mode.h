// rpc/modes/local_sgd_mode.h: the mode local_sgd.
#pragma once

#include "rpc/modes/mode.h"

namespace rpc {

// A worker makes `local_steps` steps by itself. Then the shards compute the mean of all workers'
// values, and continue from it according to `outer`.
kj::Own<const Mode> readLocalSgdMode(const ModeRow& row, configs::Reader& reader);

}  // namespace rpc
