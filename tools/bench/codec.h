// tools/bench/codec.h: `bench codec`: the cost of encoding and decoding, per value.
#pragma once

#include <kj/main.h>

#include "runner/system/command_line.h"

namespace tools {

class BenchCodec {
public:
  explicit BenchCodec(runner::CommandLine& commandLine): commandLine(commandLine) {}

  // Returns the sub-command. This object must outlive it.
  kj::MainFunc getMain();

private:
  kj::MainBuilder::Validity run();

  runner::CommandLine& commandLine;
  kj::uint values = 65536;
  kj::uint workers = 4;
};

}  // namespace tools
