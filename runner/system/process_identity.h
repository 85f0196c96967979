// runner/system/process_identity.h: identifies a process, even one of another machine.
#pragma once

#include <kj/common.h>
#include <kj/io.h>
#include <kj/string.h>
#include <sys/types.h>

namespace runner {

// A process. Its number alone does not identify it: numbers are reused, and each machine and each
// container numbers its processes separately.
struct ProcessIdentity {
  pid_t pid = 0;
  kj::String host;  // the name of its machine, for people
  kj::String boot;  // thisBoot() of its machine
  // When the process began, in the kernel's ticks since the boot. 0 if the kernel did not say.
  uint64_t begun_ticks = 0;

  // Returns the process of this machine that has the number `pid` now, such as getpid().
  static ProcessIdentity of(pid_t pid);

  // Whether the process belongs to this machine. It may have ended.
  bool isHere() const;
  // Returns a descriptor (a pidfd) that can be read when the process has ended. Null if this
  // process cannot see it: it has ended, or runs on another machine or in another container.
  kj::Maybe<kj::AutoCloseFd> open() const;
};

// Sends `signal` to the process behind a descriptor of ProcessIdentity::open(). Returns 0, or
// errno. A process that has ended is not an error.
int sendSignal(int process, int signal);

// Waits until the process behind such a descriptor has ended. Returns false if `limit_s` pass
// before.
bool waitForEnd(int process, kj::uint limit_s);

}  // namespace runner
