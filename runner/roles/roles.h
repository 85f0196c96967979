// runner/roles/roles.h: the task of one process of a job (or of one thread, with launcher inline):
// coordinator, server or worker.
#pragma once

#include <kj/io.h>

#include "runner/experiment/experiment.h"
#include "runner/logs/run_log.h"
#include "runner/roles/role_options.h"

namespace runner {

// ListeningCoordinator::run() and the run functions below run a role to its end on the calling
// thread. They return if the job ended well. Otherwise they throw with the role, the cause and what
// to do. The exception's type is DISCONNECTED if the cause is that another role was lost.

// A coordinator that listens, and whose run has no folder yet. Lives on one thread.
class ListeningCoordinator {
public:
  // Listens at options.listen. Throws if that fails, or if other machines reach it and
  // options.secret is not set. Without a launcher, captures Ctrl-C, SIGTERM and SIGHUP. The
  // arguments must outlive this object. Does not use options.folder.
  ListeningCoordinator(const LoadedExperiment& loaded, const RoleOptions& options);
  ~ListeningCoordinator() noexcept(false);
  KJ_DISALLOW_COPY(ListeningCoordinator);

  // Runs the job. The first event names the address. Every event goes to the files of `folder`
  // while `access` is open, and to `tell`. Throws if the folder already holds a run. Without a
  // launcher, the captured signals end the coordinator too. It first saves the run, which takes at
  // most SAVES_WITHIN. A second signal ends the saving. It then records the interruption, and
  // calls options.endEarly. Nothing that happens after the run has finished changes its result.
  // Call once.
  void run(const RunFolder& folder, RunLog::Tell tell,
      kj::Maybe<kj::Own<const LogAccess>> access = nullptr);

private:
  struct Socket;

  const LoadedExperiment& loaded;
  const RoleOptions& options;
  kj::Own<Socket> socket;
};

// Run a server or a worker until the job is over.
void runServer(const LoadedExperiment& loaded, const RoleOptions& options);
void runWorker(const LoadedExperiment& loaded, const RoleOptions& options);

// Runs options.role. Only the coordinator uses `tell` and `access`.
void runRole(const LoadedExperiment& loaded, const RoleOptions& options, RunLog::Tell tell,
    kj::Maybe<kj::Own<const LogAccess>> access = nullptr);

}  // namespace runner
