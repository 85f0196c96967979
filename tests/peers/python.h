// tests/peers/python.h: which Python runs the scripts of these tests.
#pragma once

#include <kj/string.h>
#include <stdlib.h>

namespace tests {

// Returns the Python that RUNNER_PYTHON names, or else python3.
inline kj::StringPtr python() {
  auto named = ::getenv("RUNNER_PYTHON");
  return named == nullptr || *named == 0 ? "python3"_kj : kj::StringPtr(named);
}

}  // namespace tests
