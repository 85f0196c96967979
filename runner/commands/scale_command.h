// runner/commands/scale_command.h: `runner scale`.
#pragma once

#include "runner/commands/option_values.h"
#include "runner/system/command_line.h"

namespace runner {

// Changes how many workers a run has while it trains.
class ScaleCommand {
public:
  // The command line must outlive this object.
  explicit ScaleCommand(CommandLine& commandLine): commandLine(commandLine) {}
  KJ_DISALLOW_COPY(ScaleCommand);

  kj::MainFunc getMain();

private:
  Validity setCount(kj::StringPtr word);
  Validity scale();

  CommandLine& commandLine;
  kj::String path;
  kj::uint count = 0;
};

}  // namespace runner
