// runner/launch/ssh_launcher.h: roles on the machines of cluster.hosts, started by ssh.
#pragma once

#include "runner/launch/launcher.h"

namespace runner {

// Copies this program to every host, and starts the roles there. The coordinator runs here. `run`
// must outlive it.
kj::Own<Launcher> newSshLauncher(const LaunchedRun& run);

}  // namespace runner
