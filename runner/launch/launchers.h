// runner/launch/launchers.h: the table of launchers.
#pragma once

#include "runner/launch/launcher.h"

namespace runner {

// Returns the launcher that `cluster.launcher` names. `run` must outlive it.
kj::Own<Launcher> newLauncher(const LaunchedRun& run);

}  // namespace runner
