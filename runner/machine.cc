#include "runner/machine.h"

#include <sched.h>
#include <unistd.h>

#include "runner/files.h"

namespace runner {

namespace {

// 4096 cores fill less than 16 MiB of it.
constexpr uint64_t CPU_INFO_BYTES_MAX = 64 << 20;

// What stands behind the first `name` of /proc/cpuinfo.
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

Machine thisMachine() {
  Machine machine;
  machine.cpu = cpuInfo("model name");
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) machine.cores = CPU_COUNT(&set);
  machine.memory_bytes = uint64_t(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE);
  return machine;
}

}  // namespace runner
