// runner/system/machine.h: what a run's machine is, for tables and reports.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace runner {

struct Machine {
  kj::String cpu;      // its name as the system gives it; empty if it does not
  kj::uint cores = 0;  // that this process may use: whole ones, at least 1
  uint64_t memory_bytes = 0;
};

Machine thisMachine();

// Which boot of which machine this is, as Linux names it: processes that see the same share their
// monotonic clock. Empty if it does not say.
kj::String thisBoot();

// How many whole cores a cgroup's `cpu.max` allows, at least 1; null if it sets no limit. `text` is
// quota and period in microseconds, `150000 100000`, or `max` in place of the quota
// (https://docs.kernel.org/admin-guide/cgroup-v2.html).
kj::Maybe<kj::uint> coresOfQuota(kj::StringPtr text);

}  // namespace runner
