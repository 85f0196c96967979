// rpc/modes/async_modes.h: the modes dist_async, dist_ssp and dc_asgd.
#pragma once

#include "rpc/modes/mode.h"

namespace rpc {

// Each push becomes an update when it arrives. With `staleness`, it is answered when the slowest
// worker is near enough. With `compensation`, its gradient is corrected first.
kj::Own<const Mode> readAsyncMode(const ModeRow& row, configs::Reader& reader);

}  // namespace rpc
