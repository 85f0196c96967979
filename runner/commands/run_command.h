// runner/commands/run_command.h: `runner run`.
#pragma once

#include "runner/commands/file_command.h"

namespace runner {

// Runs the one run of a file, or those of its sweep.
class RunCommand: private FileCommand {
public:
  // The command line must outlive it.
  explicit RunCommand(CommandLine& commandLine): FileCommand(commandLine) {}

  kj::MainFunc getMain();

private:
  Validity run();
  // What is allowed, but hardly meant: each sentence once.
  void warnOf(kj::ArrayPtr<const LoadedRun> runs);

  kj::String runs = kj::str("runs");
  kj::String tracePath;
  kj::Maybe<rpc::TraceSteps> traceSteps;
};

}  // namespace runner
