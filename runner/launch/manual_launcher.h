// runner/launch/manual_launcher.h: roles that the user starts, in terminals or by a system unknown
// to this program.
#pragma once

#include "runner/launch/launcher.h"

namespace runner {

// Starts the coordinator, and prints the command for every other process, one per line. The
// launcher cannot see whether the roles run. They tell the coordinator why they end. `run` must
// outlive it.
kj::Own<Launcher> newManualLauncher(const LaunchedRun& run);

}  // namespace runner
