// runner/testing/ranks_of.h: runs launchers of ranks, for tests that replace mpirun or srun by a
// shell script.
#pragma once

#include <kj/function.h>

#include "runner/launch/launcher.h"

namespace runner {

// Keeps the lines that are said.
class Said final: public RunView {
public:
  Said(): RunView(1, 1) {}
  void show(Event::Reader) override {}
  void say(kj::StringPtr line) override { lines.add(kj::str(line)); }
  void showWait(kj::StringPtr) override {}
  void end() override {}

  kj::Vector<kj::String> lines;
};

// Writes a shell script into `folder` and returns its path.
kj::String writeScript(const RunFolder& folder, kj::StringPtr name, kj::StringPtr commands);

// Starts the ranks of configs/fashion_mnist_dist_sync.toml with `overrides`, waits until their
// command ends, and returns what it has printed. The overrides name the launcher, and `make` makes
// it.
kj::String ranksOf(const RunFolder& folder, kj::ArrayPtr<const kj::StringPtr> overrides,
    kj::FunctionParam<kj::Own<Launcher>(const LaunchedRun&)> make);

}  // namespace runner
