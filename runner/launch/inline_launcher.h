// runner/launch/inline_launcher.h: roles as threads of this process, connected over the loopback.
#pragma once

#include "runner/launch/launcher.h"

namespace runner {

// `run` must outlive it. Threads of a failed or dropped run cannot be ended. They no longer write
// to the run's logs, but the caller must end the process.
kj::Own<Launcher> newInlineLauncher(const LaunchedRun& run);

}  // namespace runner
