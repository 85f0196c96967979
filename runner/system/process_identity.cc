#include "runner/system/process_identity.h"

#include <errno.h>
#include <kj/debug.h>
#include <kj/time.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runner/system/files.h"
#include "runner/system/machine.h"

namespace runner {

namespace {

// Returns when the process `pid` began, from the 22nd word of its `stat` (proc(5)). 0 if there is
// no such process.
uint64_t begunTicksOf(pid_t pid) {
  constexpr uint64_t STAT_BYTES_MAX = 4096;
  constexpr uint BEGUN = 22, AFTER_NAME = 3;
  kj::String text;
  auto path = kj::str("/proc/", pid, "/stat");
  auto read = [&]() { text = readWhole(path, STAT_BYTES_MAX); };
  if (kj::runCatchingExceptions(read) != nullptr) return 0;
  // The second word is the program's name in parentheses, which may contain spaces.
  auto rest = text.slice(text.findLast(')').orDefault(text.size()));
  for (uint word = AFTER_NAME; word <= BEGUN; word++) {
    KJ_IF_MAYBE(space, rest.findFirst(' ')) {
      rest = rest.slice(*space + 1);
    } else {
      return 0;
    }
  }
  return ::strtoull(rest.cStr(), nullptr, 10);
}

kj::String hostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0) return kj::str();
  return kj::str(static_cast<const char*>(name));
}

}  // namespace

ProcessIdentity ProcessIdentity::of(pid_t pid) {
  return {pid, hostName(), thisBoot(), begunTicksOf(pid)};
}

bool ProcessIdentity::isHere() const {
  return boot.size() > 0 && boot == thisBoot();
}

kj::Maybe<kj::AutoCloseFd> ProcessIdentity::open() const {
  if (!isHere() || pid <= 0) return nullptr;
  int raw = ::syscall(SYS_pidfd_open, pid, 0);
  if (raw < 0) {
    KJ_REQUIRE(errno == ESRCH || errno == EINVAL, "cannot look at the process", pid, errno);
    return nullptr;
  }
  kj::AutoCloseFd fd(raw);
  // The descriptor keeps the number from being reused. But it may have been reused before the
  // descriptor was opened.
  if (begun_ticks == 0 || begunTicksOf(pid) != begun_ticks) return nullptr;
  return kj::mv(fd);
}

int sendSignal(int process, int signal) {
  if (::syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0) == 0) return 0;
  return errno == ESRCH ? 0 : errno;
}

bool waitForEnd(int process, uint limit_s) {
  auto& clock = kj::systemPreciseMonotonicClock();
  auto end = clock.now() + limit_s * kj::SECONDS;
  for (;;) {
    pollfd ended = {process, POLLIN, 0};
    auto left_ms = kj::max(int64_t(0), (end - clock.now()) / kj::MILLISECONDS);
    int ready = ::poll(&ended, 1, left_ms);
    if (ready > 0) return true;
    if (ready == 0) return false;
    KJ_REQUIRE(errno == EINTR, "cannot wait for a process", errno);
  }
}

}  // namespace runner
