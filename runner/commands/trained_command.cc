#include "runner/commands/trained_command.h"

#include "runner/commands/run_data.h"
#include "runner/system/reason.h"

namespace runner {

void TrainedCommand::addModel(kj::MainBuilder& builder) {
  builder.addOptionWithArg(
      {"set"},
      [this](kj::StringPtr word) {
        overrides.add(word);
        return true;
      },
      "KEY=VALUE",
      "override a value of the experiment, e.g. --set data.batch_size=64; may be repeated");
  builder.expectArg("RUN", [this](kj::StringPtr word) {
    path = kj::str(word);
    return true;
  });
}

TrainedModel TrainedCommand::openModel() {
  kj::Maybe<TrainedModel> model;
  commandLine.orWrongInput([&]() {
    withProgress([&](io::Progress& progress) { model = openTrained(path, overrides, progress); });
  });
  auto& opened = KJ_ASSERT_NONNULL(model);
  if (opened.loaded.experiment == nullptr) commandLine.exitError(opened.loaded.errors);
  if (!opened.report.unused.empty()) {
    commandLine.warning(
        kj::str("the network does not use all arrays of ", path, ": ", opened.report.text(),
            ". If the file is of a network that needs them, the figures are wrong"));
  }
  return kj::mv(opened);
}

TrainedModel TrainedCommand::openModelHere() {
  auto model = openModel();
  KJ_IF_MAYBE(sentence, model.computeHere()) commandLine.warning(*sentence);
  return model;
}

}  // namespace runner
