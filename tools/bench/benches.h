// tools/bench/benches.h: the sub-commands. Most of them first check that their results are right.
#pragma once

#include <kj/main.h>

#include "runner/system/command_line.h"

namespace tools {

// Each function returns a sub-command. `commandLine` must outlive it.

// The cost of encoding and decoding gradients, per value.
kj::MainFunc benchCodec(runner::CommandLine& commandLine);
// Push and pull compared with limits of the machine and with other programs.
kj::MainFunc benchKvStore(runner::CommandLine& commandLine);
// The losses of the first training steps, and the data behind them, for other programs.
kj::MainFunc benchLosses(runner::CommandLine& commandLine);
// The steps of an experiment on hosts behind slow links.
kj::MainFunc benchNetwork(runner::CommandLine& commandLine);
// Our program and PyTorch, measured in alternation.
kj::MainFunc benchPeers(runner::CommandLine& commandLine);
// The speed at which records become batches, compared with other programs that read the same
// images.
kj::MainFunc benchReader(runner::CommandLine& commandLine);
// The training steps of a file's network.
kj::MainFunc benchTrain(runner::CommandLine& commandLine);

}  // namespace tools
