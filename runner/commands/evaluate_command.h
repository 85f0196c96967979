// runner/commands/evaluate_command.h: `runner evaluate`.
#pragma once

#include "runner/commands/trained_command.h"
#include "runner/inference/judgement.h"

namespace runner {

// Computes the validation figures of a trained network.
class EvaluateCommand: private TrainedCommand {
public:
  using TrainedCommand::TrainedCommand;

  kj::MainFunc getMain();

private:
  // Images with the network's predictions for them.
  struct Judged {
    const TrainedModel& model;
    const Judgement& judgement;
    kj::String images;  // a line about them
    double seconds;
  };

  Validity evaluate();
  // Set the default values of --worst and --top. Return why the given values are wrong, or null.
  kj::Maybe<kj::String> chooseWorst();
  kj::Maybe<kj::String> chooseTopK(const TrainedModel& model);
  // Judges the images that the options name. Ends the process if there are none. The arguments must
  // outlive the result.
  Judged judge(TrainedModel& model, Judgement& judgement);
  // Judges the validation images of the experiment, or those of the folder `data`. Returns a line
  // about them.
  kj::String judgeOwn(TrainedModel& model, Judgement& judgement);
  kj::String judgeFolder(TrainedModel& model, Judgement& judgement);
  void printJson(const Judged& judged) const;
  void printRow(const Judged& judged) const;
  // Writes the files of --into.
  void writePages(const Judged& judged);

  kj::String data;
  kj::String into;
  uint64_t topK = 0;              // 0: log.top_k, or 5 if there are more classes
  uint64_t worst = kj::maxValue;  // how many images to show; kj::maxValue: not given
  bool asJson = false;

  // Returns the JPEG file of a wrong image, and its name. Set with the images that were judged.
  struct Shown {
    kj::Array<kj::byte> jpeg;
    kj::String name;
  };
  kj::Maybe<kj::Function<Shown(uint64_t number)>> show;
};

}  // namespace runner
