// runner/machine.h: what a run's machine is, for tables and reports.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace runner {

struct Machine {
  kj::String cpu;      // its name as the system gives it; empty if it does not
  kj::uint cores = 0;  // that this process may use
  uint64_t memory_bytes = 0;
};

Machine thisMachine();

}  // namespace runner
