// runner/commands/check_command.h: `runner check`.
#pragma once

#include "runner/commands/file_command.h"

namespace runner {

// Reports all errors of a file.
class CheckCommand: private FileCommand {
public:
  // The command line must outlive this object.
  explicit CheckCommand(CommandLine& commandLine): FileCommand(commandLine) {}

  kj::MainFunc getMain();

private:
  Validity check();
};

}  // namespace runner
