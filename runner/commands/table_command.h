// runner/commands/table_command.h: `runner table`.
#pragma once

#include <kj/main.h>
#include <kj/vector.h>

#include "runner/commands/option_values.h"
#include "runner/system/command_line.h"

namespace runner {

// Prints the table of finished runs, and writes their report.
class TableCommand {
public:
  // The command line must outlive this object.
  explicit TableCommand(CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain();

private:
  Validity addRuns(kj::StringPtr word);
  Validity table();

  CommandLine& commandLine;
  kj::Vector<kj::String> named;
  kj::String into;
};

}  // namespace runner
