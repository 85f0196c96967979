// runner/commands/stop_command.h: `runner stop`.
#pragma once

#include "runner/commands/option_values.h"
#include "runner/system/command_line.h"

namespace runner {

// Ends a run or a sweep that is in progress.
class StopCommand {
public:
  // The command line must outlive this object.
  explicit StopCommand(CommandLine& commandLine): commandLine(commandLine) {}
  KJ_DISALLOW_COPY(StopCommand);

  kj::MainFunc getMain();

private:
  Validity stop();

  CommandLine& commandLine;
  kj::String path;
};

}  // namespace runner
