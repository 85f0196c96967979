// runner/launch/launchers.h: the table of launchers.
#pragma once

#include "runner/launch/launcher.h"

namespace runner {

// Returns the launcher that `cluster.launcher` names. `run` must outlive it.
kj::Own<Launcher> newLauncher(const LaunchedRun& run);

// Returns the secret of a new run: drawn at random, or, if the user starts the roles, the one that
// the user gave them: see secretOfUser().
rpc::Secret secretFor(const ClusterConfig& cluster);

}  // namespace runner
