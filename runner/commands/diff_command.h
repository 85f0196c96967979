// runner/commands/diff_command.h: `runner diff`.
#pragma once

#include <kj/main.h>

#include "runner/commands/option_values.h"
#include "runner/system/command_line.h"

namespace runner {

// Shows where two checkpoints, or two files of weights, differ.
class DiffCommand {
public:
  // The command line must outlive this object.
  explicit DiffCommand(CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain();

private:
  Validity compare();

  CommandLine& commandLine;
  kj::String a;
  kj::String b;
};

}  // namespace runner
