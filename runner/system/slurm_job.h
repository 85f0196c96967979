// runner/system/slurm_job.h: the job of Slurm in which this process runs.
#pragma once

#include <kj/string.h>

namespace runner {

// Returns the id of the job, or of the task of a job array (17_3), that this process belongs to.
// Null outside of Slurm.
kj::Maybe<kj::String> ownSlurmJob();

// Returns how often Slurm has started that job again. 0 if it never has, or outside of Slurm.
kj::uint ownSlurmRestarts();

}  // namespace runner
