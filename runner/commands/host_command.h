// runner/commands/host_command.h: `runner host`.
#pragma once

#include <kj/main.h>

#include "runner/system/command_line.h"

namespace runner {

// Starts roles on this machine for a launcher on another one.
class HostCommand {
public:
  // The command line must outlive this object.
  explicit HostCommand(CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain();

private:
  CommandLine& commandLine;
};

}  // namespace runner
