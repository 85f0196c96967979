// runner/commands/ps_command.h: `runner ps`.
#pragma once

#include "runner/commands/option_values.h"
#include "runner/system/command_line.h"

namespace runner {

// Lists the running and queued runs and sweeps.
class PsCommand {
public:
  // The command line must outlive this object.
  explicit PsCommand(CommandLine& commandLine): commandLine(commandLine) {}
  KJ_DISALLOW_COPY(PsCommand);

  kj::MainFunc getMain();

private:
  Validity list();

  CommandLine& commandLine;
  kj::String runs = kj::str("runs");
};

}  // namespace runner
