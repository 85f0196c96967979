// runner/commands/reference_command.h: `runner reference`.
#pragma once

#include <kj/main.h>

#include "runner/system/command_line.h"

namespace runner {

// Prints configs/REFERENCE.md.
class ReferenceCommand {
public:
  // The command line must outlive this object.
  explicit ReferenceCommand(CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain();

private:
  CommandLine& commandLine;
};

}  // namespace runner
