#include "runner/system/slurm_job.h"

#include <stdlib.h>

namespace runner {

kj::Maybe<kj::String> ownSlurmJob() {
  auto array = ::getenv("SLURM_ARRAY_JOB_ID"), task = ::getenv("SLURM_ARRAY_TASK_ID");
  if (array != nullptr && task != nullptr) return kj::str(array, "_", task);
  auto job = ::getenv("SLURM_JOB_ID");
  if (job == nullptr) return nullptr;
  return kj::str(job);
}

kj::uint ownSlurmRestarts() {
  auto count = ::getenv("SLURM_RESTART_COUNT");
  return count == nullptr ? 0 : ::strtoul(count, nullptr, 10);
}

}  // namespace runner
