// runner/system/child_process.h: one role as a child process that never outlives its launcher.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/string.h>

namespace runner {

// A child in its own process group of the launcher's session. It is killed when this object goes,
// and dies by itself when the launcher does: by the parent-death signal, and because its standard
// input closes.
class ChildProcess {
public:
  // Starts this very binary with `arguments`. `name` is what messages call it ("worker 1"). `port`
  // must capture child exits. Throws if the system cannot start it.
  ChildProcess(kj::StringPtr name, kj::ArrayPtr<const kj::String> arguments,
      kj::LowLevelAsyncIoProvider& io, kj::UnixEventPort& port);
  ~ChildProcess() noexcept(false);
  KJ_DISALLOW_COPY(ChildProcess);

  const kj::String name;

  // What it writes. Each can be taken once.
  kj::Own<kj::AsyncInputStream> output;
  kj::Own<kj::AsyncInputStream> errors;

  // Resolves with the status of wait() when it has ended. Call once.
  kj::Promise<int> ended();
  // Whether a signal has stopped it and it has not continued since.
  bool isStopped() const;

private:
  kj::Maybe<pid_t> pid;  // null once it was waited for
  kj::AutoCloseFd input;
  kj::Promise<int> exit;
};

}  // namespace runner
