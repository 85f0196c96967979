// runner/system/machine.h: the machine of a run, for tables and reports.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace runner {

// The machine of a process, for people.
struct Machine {
  kj::String cpu;      // its name from the system; empty if the system names none
  kj::uint cores = 0;  // whole cores that this process may use, at least 1
  uint64_t memory_bytes = 0;
};

// Returns this machine. The cores are limited by affinity and by the container's quota.
Machine thisMachine();

// Returns the name of this machine in its network. Empty if the system does not say.
kj::String thisHostName();

// Returns the identity of this boot of this machine, as Linux names it. Processes with the same
// identity share their monotonic clock. Empty if the system does not say.
kj::String thisBoot();

// Returns how many whole cores a cgroup's `cpu.max` allows, at least 1. Null if it sets no limit.
// `text` is quota and period in microseconds, `150000 100000`, or `max` in place of the quota
// (https://docs.kernel.org/admin-guide/cgroup-v2.html).
kj::Maybe<kj::uint> coresOfQuota(kj::StringPtr text);

}  // namespace runner
