// tools/bench/train.h: `bench train`: measures the training steps of a file's network.
#pragma once

#include "tools/bench/command.h"
#include "tools/bench/training.h"

namespace tools {

class BenchTrain: private ExperimentCommand {
public:
  explicit BenchTrain(runner::CommandLine& commandLine): ExperimentCommand(commandLine, 20) {}

  // Returns the sub-command. This object must outlive it.
  kj::MainFunc getMain();

private:
  kj::MainBuilder::Validity run();

  // Which table of ops is printed below the figures.
  enum class Table { NONE, BY_KIND, BY_OP };

  kj::Maybe<Table> table;  // null: by kind, but none with JSON
  uint seconds = 0;        // the length of the measurement; 0: it is given by steps
  AssumedImages assumed;
  bool json = false;
  bool data = false;
  bool checks = true;
};

}  // namespace tools
