// runner/commands/diff_command.h: `runner diff`.
#pragma once

#include <kj/main.h>

#include "runner/checkpoints/saved_files.h"
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
  // Replaces the checkpoint of `other` by the final weights of its run, if `one` is a run that has
  // only final weights: the checkpoint is older.
  void matchWeights(
      const SavedFiles& one, kj::StringPtr ofOne, SavedFiles& other, kj::StringPtr ofOther) const;

  CommandLine& commandLine;
  kj::String a;
  kj::String b;
};

}  // namespace runner
