// runner/launch/slurm_launcher.h: servers and workers as tasks of srun, in an allocation of Slurm.
#pragma once

#include "runner/launch/launcher.h"

namespace runner {

// Calls srun in the allocation that this process runs in. The nodes share the folder of runs.
// `run` must outlive it.
kj::Own<Launcher> newSlurmLauncher(const LaunchedRun& run);

// Whether this process runs in an allocation.
bool isInSlurm();

// Returns the script for sbatch that makes an allocation and starts the run there.
kj::String slurmScript(const LoadedExperiment& loaded);
// Returns, for the user, that only that script starts the run, and the command for it.
kj::String slurmAdvice();

}  // namespace runner
