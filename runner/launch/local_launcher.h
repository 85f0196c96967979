// runner/launch/local_launcher.h: roles as processes on this machine, connected over the loopback.
#pragma once

#include "runner/launch/launcher.h"

namespace runner {

// Reads a role's standard error, and explains why the role ended.
class RoleReport {
public:
  // `name` is what messages call the process. Lines for the user go to `view`. Both must outlive
  // the report. `isHere`: the process runs on this machine, with the limits of its launcher.
  RoleReport(kj::StringPtr name, RunView& view, bool isHere)
      : name(name), view(view), isHere(isHere) {}

  // A role that fails gives the reason in a line that begins with "error: ". All other lines go to
  // the view.
  void take(kj::StringPtr line);
  // `status` is that of wait(). Returns null if the role ended well.
  kj::Maybe<Failure> judge(int status);

private:
  const kj::StringPtr name;
  RunView& view;
  const bool isHere;
  bool hasLostRole = false;  // of a coordinator: see LOST_ROLE_LINE
  kj::String cause;
};

// Returns the words of the command that runs a role as a child of its launcher, which holds the
// role's standard streams. The first word is the program's name. The caller adds the path of the
// experiment.
kj::Array<kj::String> commandOf(const RoleOptions& options);

// Starts the coordinator as a child process that listens at `place`.
StartedCoordinator startCoordinatorHere(const LaunchedRun& run, ListenPlace place);

// `run` must outlive it.
kj::Own<Launcher> newLocalLauncher(const LaunchedRun& run);

}  // namespace runner
