// runner/commands/inspect_command.h: `runner inspect`.
#pragma once

#include <kj/main.h>

#include "runner/checkpoints/saved_files.h"
#include "runner/commands/option_values.h"
#include "runner/system/command_line.h"

namespace runner {

// Shows what a checkpoint or a file of weights holds.
class InspectCommand {
public:
  // The command line must outlive this object.
  explicit InspectCommand(CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain();

private:
  Validity inspect(kj::StringPtr path);

  CommandLine& commandLine;
};

// Returns the run, checkpoint or file at `path`. If the path names nothing of the kind, or
// something damaged, prints why and ends the program.
SavedFiles readSavedOrEnd(kj::StringPtr path, CommandLine& commandLine);

}  // namespace runner
