// runner/launch/slurm_launcher.h: servers and workers as tasks of srun, in an allocation of Slurm.
#pragma once

#include "runner/launch/launcher.h"

namespace runner {

// Calls srun in the allocation that this process runs in. The nodes share the folder of runs.
// `run` must outlive it.
kj::Own<Launcher> newSlurmLauncher(const LaunchedRun& run);

// Whether this process runs in an allocation.
bool isInSlurm();

// Returns a script for sbatch that makes an allocation and starts the run there, in a new folder.
kj::String slurmScript(const LoadedExperiment& loaded);

// Returns a script for sbatch that starts runs in their own folders, which hold their
// experiment.toml. The output of a run goes to RunFolder::output() and messages(). Several runs
// make a job array with one task per run. At most `parallel` tasks run at a time. Each task
// requests the resources of the largest run.
kj::String slurmScript(kj::ArrayPtr<const Experiment* const> runs,
    kj::ArrayPtr<const RunFolder> folders, kj::Maybe<uint> parallel);

// Returns how many Slurm tasks a run has: one per server and worker.
uint slurmTasks(const Experiment& experiment);

}  // namespace runner
