// runner/commands/trained_command.h: the common part of commands that use a trained network.
#pragma once

#include <kj/main.h>
#include <kj/vector.h>

#include "runner/commands/option_values.h"
#include "runner/inference/trained_model.h"
#include "runner/system/command_line.h"

namespace runner {

// A command with the argument RUN: see openTrained().
class TrainedCommand {
public:
  // The command line must outlive this object.
  explicit TrainedCommand(CommandLine& commandLine): commandLine(commandLine) {}
  KJ_DISALLOW_COPY(TrainedCommand);

protected:
  CommandLine& commandLine;

  // Adds the option --set and the argument RUN to `builder`.
  void addModel(kj::MainBuilder& builder);
  // Opens RUN. If that is not possible, prints why and ends the program.
  TrainedModel openModel();
  // Does the same, and prepares to compute on this machine. Warns the user of a missing device.
  TrainedModel openModelHere();

private:
  kj::String path;
  kj::Vector<kj::StringPtr> overrides;
};

}  // namespace runner
