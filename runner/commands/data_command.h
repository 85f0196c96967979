// runner/commands/data_command.h: `runner data`.
#pragma once

#include "io/datasets/datasets.h"
#include "runner/commands/file_command.h"

namespace runner {

// Shows and checks what a record database holds.
class DataCommand {
public:
  // The command line must outlive this object.
  explicit DataCommand(CommandLine& commandLine);
  ~DataCommand() noexcept(false);

  kj::MainFunc getMain();

private:
  class Info;
  class Verify;
  class Show;

  CommandLine& commandLine;
  kj::Own<Info> info;
  kj::Own<Verify> verify;
  kj::Own<Show> show;
};

}  // namespace runner
