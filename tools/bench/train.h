// tools/bench/train.h: `bench train`: the steps of a file's network, timed.
#pragma once

#include "tools/bench/command.h"
#include "tools/bench/training.h"

namespace tools {

class BenchTrain: private ExperimentCommand {
public:
  explicit BenchTrain(runner::CommandLine& commandLine): ExperimentCommand(commandLine, 20) {}

  // Of the sub-command. This object must outlive it.
  kj::MainFunc getMain();

private:
  kj::MainBuilder::Validity run();

  // Which table of ops stands below the figures.
  enum class Table { NONE, BY_KIND, BY_OP };

  kj::Maybe<Table> table;  // null: by kind, but with JSON none
  uint seconds = 0;        // rather than steps; 0: steps
  AssumedImages assumed;
  bool json = false;
  bool data = false;
  bool checks = true;
};

}  // namespace tools
