// tests/peers/torch.h: finds the Python with PyTorch that tests compare with.
#pragma once

#include <doctest/doctest.h>

#include "tests/text.h"
#include "tools/bench/torch_python.h"

namespace tests {

constexpr char NO_TORCH[] = "no Python with PyTorch (RUNNER_PYTHON can name one)";

// Returns the program that tools::findTorch() finds, or an empty text. Searches once for all cases
// of a test program. The log has the version, or the reason why there is none.
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
