// runner/launch/launchers.h: the table of launchers.
#pragma once

#include "runner/launch/launcher.h"

namespace runner {

// Returns the launcher that `cluster.launcher` names. `run` must outlive it.
kj::Own<Launcher> newLauncher(const LaunchedRun& run);

// A run that the user hands to another system, which then starts all roles.
struct Submission {
  kj::String text;    // what `runner run --dry-run` prints
  kj::String advice;  // why `runner run` without --dry-run does nothing, and the commands to use
};
// Null if `runner run` starts roles itself.
kj::Maybe<Submission> submissionOf(const LoadedExperiment& loaded);

// Returns the secret of a new run: drawn at random, or, if the user starts the roles, the one that
// the user gave them: see secretOfUser().
rpc::Secret secretFor(const ClusterConfig& cluster);

}  // namespace runner
