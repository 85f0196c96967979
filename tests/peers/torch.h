// tests/peers/torch.h: the Python whose PyTorch a test compares with.
#pragma once

#include <doctest/doctest.h>

#include "tests/text.h"
#include "tools/bench/torch_python.h"

namespace tests {

constexpr char NO_TORCH[] = "no Python with PyTorch (RUNNER_PYTHON can name one)";

// The program that tools::findTorch() finds, once for all cases of a test program; empty if there
// is none. The log tells the version, or why there is none.
inline kj::StringPtr torchPython() {
  static auto search = tools::findTorch();
  KJ_IF_MAYBE(newest, search.newest) {
    MESSAGE("PyTorch ", newest->version, " of ", newest->program);
    return newest->program;
  }
  MESSAGE(search.whyNone());
  return ""_kj;
}

}  // namespace tests
