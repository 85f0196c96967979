// tools/bench/network.h: `bench network`: measures the steps of an experiment on hosts behind slow
// links.
#pragma once

#include <kj/vector.h>

#include "tools/bench/command.h"
#include "tools/bench/network_rows.h"

namespace tools {

class BenchNetwork: private ExperimentCommand {
public:
  explicit BenchNetwork(runner::CommandLine& commandLine): ExperimentCommand(commandLine, 10) {}

  // Returns the sub-command. This object must outlive it.
  kj::MainFunc getMain();

private:
  kj::MainBuilder::Validity setBandwidths(kj::StringPtr words);
  kj::MainBuilder::Validity setProgram(kj::StringPtr word);
  kj::MainBuilder::Validity setWait(kj::StringPtr word);
  kj::MainBuilder::Validity run();
  NetworkRow measure(const runner::Experiment& experiment, uint mbit);

  kj::Vector<uint> bandwidths_mbit;  // empty: 1000
  bool waits = false;
  kj::Maybe<double> wait_ms;  // null: the time that the network needs to compute
  uint rounds = 3;
  bool json = false;
};

}  // namespace tools
