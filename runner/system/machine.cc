#include "runner/system/machine.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "runner/system/files.h"

namespace runner {

using kj::uint;

namespace {

// 4096 cores take less than 16 MiB.
constexpr uint64_t CPU_INFO_BYTES_MAX = 64 << 20;

// The limit of a container, as the container sees it. The file is absent outside of containers.
constexpr kj::StringPtr QUOTA = "/sys/fs/cgroup/cpu.max"_kj;
constexpr uint64_t QUOTA_BYTES_MAX = 4096;
constexpr uint64_t BOOT_BYTES_MAX = 4096;

uint coresHere() {
  cpu_set_t set;
  // The call fails if the kernel counts more than the 1024 CPUs of a set.
  uint cores = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                              : ::sysconf(_SC_NPROCESSORS_ONLN);
  if (::access(QUOTA.cStr(), R_OK) == 0) {
    KJ_IF_MAYBE(allowed, coresOfQuota(readWhole(QUOTA, QUOTA_BYTES_MAX))) {
      cores = kj::min(cores, *allowed);
    }
  }
  return cores;
}

// Returns the value of the first `name` in /proc/cpuinfo.
kj::String cpuInfo(kj::StringPtr name) {
  if (::access("/proc/cpuinfo", R_OK) != 0) return nullptr;
  auto text = readWhole("/proc/cpuinfo"_kj, CPU_INFO_BYTES_MAX);
  for (kj::StringPtr rest = text;;) {
    auto end = rest.findFirst('\n').orDefault(rest.size());
    if (rest.startsWith(name)) {
      auto line = kj::str(rest.slice(0, end));
      KJ_IF_MAYBE(colon, line.findFirst(':')) {
        auto value = line.slice(*colon + 1);
        return kj::str(value.startsWith(" ") ? value.slice(1) : value);
      }
    }
    if (end == rest.size()) return nullptr;
    rest = rest.slice(end + 1);
  }
}

}  // namespace

kj::Maybe<uint> coresOfQuota(kj::StringPtr text) {
  char* end;
  double quota = ::strtod(text.cStr(), &end);
  if (end == text.cStr()) return nullptr;
  double period = ::strtod(end, nullptr);
  if (!(quota > 0 && period > 0)) return nullptr;
  return uint(kj::max(1.0, kj::min(quota / period, 1e6)));
}

kj::String thisHostName() {
  char name[HOST_NAME_MAX + 1];
  if (::gethostname(name, sizeof(name)) != 0) return kj::str();
  return kj::str(name);
}

kj::String thisBoot() {
  auto path = "/proc/sys/kernel/random/boot_id"_kj;
  if (::access(path.cStr(), R_OK) != 0) return nullptr;
  auto text = readWhole(path, BOOT_BYTES_MAX);
  return kj::str(text.slice(0, text.findFirst('\n').orDefault(text.size())));
}

Machine thisMachine() {
  Machine machine;
  machine.cpu = cpuInfo("model name");
  machine.cores = coresHere();
  machine.memory_bytes = uint64_t(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE);
  return machine;
}

}  // namespace runner
