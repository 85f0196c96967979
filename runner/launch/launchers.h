// runner/launch/launchers.h: the table of launchers.
#pragma once

#include "runner/launch/launcher.h"

namespace runner {

// Returns the launcher that `cluster.launcher` names. `run` must outlive it.
kj::Own<Launcher> newLauncher(const LaunchedRun& run);

// A run that another system starts.
struct Submission {
  kj::String text;  // what `runner run --dry-run` prints
  // Why `runner run` without --dry-run cannot start the run, and the commands to use. Null if it
  // submits the run itself: see slurm_queue.h.
  kj::Maybe<kj::String> advice;
};
// Returns how another system starts this run. Null if `runner run` starts roles itself.
kj::Maybe<Submission> submissionOf(const LoadedExperiment& loaded);

// Returns why a run cannot begin on this machine, before it has a folder: the machine does not have
// cluster.interface, or the roles need a secret that the user has not given. Null if it can begin.
// With launcher `manual`, looks up the names of hosts, which may take seconds.
kj::Maybe<kj::String> whyNotFromHere(const ClusterConfig& cluster);

// Returns `said` ("nothing is left running"), which describes this machine after a run has failed
// or was interrupted. If roles run elsewhere, adds how these end.
kj::String saidOfRoles(kj::StringPtr said, const ClusterConfig& cluster);

// Returns the secret of a new run. If the user starts the roles, this is the user's secret: see
// secretOfUser(). Otherwise it is drawn at random.
rpc::Secret secretFor(const ClusterConfig& cluster);

}  // namespace runner
