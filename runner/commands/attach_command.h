// runner/commands/attach_command.h: `runner attach`.
#pragma once

#include "runner/commands/option_values.h"
#include "runner/system/command_line.h"

namespace runner {

// Follows a running run or sweep, and ends with its exit code.
class AttachCommand {
public:
  // The command line must outlive this object.
  explicit AttachCommand(CommandLine& commandLine): commandLine(commandLine) {}
  KJ_DISALLOW_COPY(AttachCommand);

  kj::MainFunc getMain();

private:
  Validity attach();

  CommandLine& commandLine;
  kj::String path;
};

}  // namespace runner
