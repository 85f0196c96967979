// runner/launch/mpi_launcher.h: servers and workers as ranks of mpirun, on hosts that share a file
// system.
#pragma once

#include "runner/launch/launcher.h"

namespace runner {

// Calls cluster.mpirun of OpenMPI, or of MPICH and its relatives with the hydra process manager.
// `run` must outlive it.
kj::Own<Launcher> newMpiLauncher(const LaunchedRun& run);

}  // namespace runner
