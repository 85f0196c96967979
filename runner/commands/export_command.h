// runner/commands/export_command.h: `runner export`.
#pragma once

#include "runner/commands/trained_command.h"
#include "runner/export/export_formats.h"

namespace runner {

// Writes a trained network for other programs.
class ExportCommand: private TrainedCommand {
public:
  using TrainedCommand::TrainedCommand;

  kj::MainFunc getMain();

private:
  const ExportFormat* format = nullptr;  // null: not named yet
  kj::String output;
  OnnxOptions options;
  bool foldsBatchNorms = false;

  Validity chooseFormat(kj::StringPtr word);
  // Returns which options contradict each other, or null.
  kj::Maybe<kj::String> misfit() const;
  Validity exportModel();
};

}  // namespace runner
