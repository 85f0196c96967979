// runner/commands/explain_command.h: `runner explain`.
#pragma once

#include "runner/commands/file_command.h"

namespace runner {

// Prints what a file resolves to.
class ExplainCommand: private FileCommand {
public:
  // The command line must outlive this object.
  explicit ExplainCommand(CommandLine& commandLine): FileCommand(commandLine) {}

  kj::MainFunc getMain();

private:
  Validity explainFile();

  double bandwidth_mbit = 0;  // 0: not given
  double overhead_ms = 0;
};

}  // namespace runner
