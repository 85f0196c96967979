// tools/bench/losses.h: `bench losses`: the losses of the first steps, with everything that they
// depend on, so that another program can compute them too.
#pragma once

#include "tools/bench/command.h"
#include "tools/bench/training.h"

namespace tools {

class BenchLosses: private ExperimentCommand {
public:
  explicit BenchLosses(runner::CommandLine& commandLine): ExperimentCommand(commandLine, 20) {}

  // Returns the sub-command. This object must outlive it.
  kj::MainFunc getMain();

private:
  kj::MainBuilder::Validity run();

  kj::String folder;  // empty: nothing is written
  uint batches = kj::maxValue;
  AssumedImages assumed;
  bool data = false;
};

}  // namespace tools
