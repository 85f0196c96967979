// runner/roles/roles.h: the task of one process of a job (or of one thread, with launcher inline):
// coordinator, server or worker.
#pragma once

#include <kj/io.h>

#include "runner/experiment/experiment.h"
#include "runner/logs/run_log.h"
#include "runner/roles/role_options.h"

namespace runner {

// Each of these functions runs a role to its end on the calling thread. It returns if the job ended
// well. Otherwise it throws with role, cause and way out. The type of the exception is DISCONNECTED
// if the cause is that another role was lost.

// Listens at options.listen. The first event names that address. Throws if other machines reach it
// and options.secret is not set. Every event goes to the files of options.folder while `access` is
// open, and to `tell`. Throws if the folder already holds a run. Without a launcher, Ctrl-C,
// SIGTERM and SIGHUP end the coordinator too. It then records the interruption, and returns false.
// Nothing that happens after the run has finished changes its result.
bool runCoordinator(const LoadedExperiment& loaded, const RoleOptions& options, RunLog::Tell tell,
    kj::Maybe<kj::Own<const LogAccess>> access = nullptr);
void runServer(const LoadedExperiment& loaded, const RoleOptions& options);
void runWorker(const LoadedExperiment& loaded, const RoleOptions& options);

// Calls the function for options.role. Only the coordinator uses `tell` and `access`.
void runRole(const LoadedExperiment& loaded, const RoleOptions& options, RunLog::Tell tell,
    kj::Maybe<kj::Own<const LogAccess>> access = nullptr);

}  // namespace runner
