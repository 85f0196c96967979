// runner/roles/free_index.h: the index of a role whose launcher gave it none.
#pragma once

#include "runner/experiment/experiment.h"
#include "runner/roles/role_options.h"

namespace runner {

// Asks the coordinator for the index of options.role: see Coordinator.takeIndex() in job.capnp. The
// role must then join with it. `loaded` has the records' digest: see addRecords(). Waits for the
// coordinator like callCoordinator(). Throws if the coordinator refuses or does not answer within
// cluster.start_timeout_s.
uint takeIndex(const LoadedExperiment& loaded, const RoleOptions& options);

}  // namespace runner
