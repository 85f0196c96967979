// runner/commands/predict_command.h: `runner predict`.
#pragma once

#include "runner/commands/trained_command.h"
#include "runner/inference/file_images.h"

namespace runner {

// Prints the most likely classes of images.
class PredictCommand: private TrainedCommand {
public:
  using TrainedCommand::TrainedCommand;

  kj::MainFunc getMain();

private:
  struct Format;
  static const Format FORMATS[];

  Validity addImages(kj::StringPtr word);
  Validity setFormat(kj::StringPtr word);
  Validity predict();

  kj::Vector<kj::String> named;
  uint64_t top = 3;
  uint64_t batchSize = 0;  // 0: as many images as there are, up to a limit
  bool withLogits = false;
  const Format* format = nullptr;  // null: a table
};

}  // namespace runner
