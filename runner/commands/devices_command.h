// runner/commands/devices_command.h: `runner devices`.
#pragma once

#include <kj/main.h>

#include "runner/system/command_line.h"

namespace runner {

// Prints the devices that this machine can compute on.
class DevicesCommand {
public:
  // The command line must outlive this object.
  explicit DevicesCommand(CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain();

private:
  CommandLine& commandLine;
};

}  // namespace runner
