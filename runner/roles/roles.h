// runner/roles/roles.h: what a process (or, inline, a thread) of a job does: coordinator, server or
// worker.
#pragma once

#include <kj/io.h>

#include "runner/experiment/experiment.h"
#include "runner/logs/run_log.h"
#include "runner/roles/role_options.h"

namespace runner {

// Each runs the role to its end on the calling thread and returns when the job went well. Throws
// with role, cause and way out; the exception's type is DISCONNECTED if what went wrong is that
// another role was lost.

// Listens on a port of the loopback that the system chooses, and says so in its first event. Every
// event goes to the files of options.folder while `access` is open, and to `tell`. Refuses a folder
// that holds a run. Without a launcher, Ctrl-C, SIGTERM and SIGHUP end it too: then it records
// that, and returns false. What happens after the run has finished changes nothing.
bool runCoordinator(const LoadedExperiment& loaded, const RoleOptions& options, RunLog::Tell tell,
    kj::Maybe<kj::Own<const LogAccess>> access = nullptr);
void runServer(const LoadedExperiment& loaded, const RoleOptions& options);
void runWorker(const LoadedExperiment& loaded, const RoleOptions& options);

// Calls the one for options.role; `tell` and `access` are for the coordinator.
void runRole(const LoadedExperiment& loaded, const RoleOptions& options, RunLog::Tell tell,
    kj::Maybe<kj::Own<const LogAccess>> access = nullptr);

}  // namespace runner
