// runner/system/child_process.h: a child process that ends at the latest with its launcher.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/string.h>
#include <kj/time.h>

namespace runner {

using kj::uint;

// A child in its own process group, in the launcher's session. The destructor kills it, and waits
// for its end. If the child has not ended after 4 s, because it hangs in the kernel on a GPU or a
// file system, the destructor warns and stops waiting. If the launcher dies, the child ends by
// itself: by the parent-death signal, and because its standard input closes.
class ChildProcess {
public:
  // Starts `program`, which is looked up in PATH, or this very program if it is null. The first of
  // `arguments` is the program's name. Writes `firstLine`, which must fit into a pipe's buffer, to
  // the child's standard input. `name` is what messages call the child ("worker 1"). `port` must
  // capture child exits. Throws if the system cannot start a process. If the program does not
  // exist, the child says so in a line that begins with "error: ", and ends with exit code 127.
  ChildProcess(kj::StringPtr name, kj::Maybe<kj::StringPtr> program,
      kj::ArrayPtr<const kj::String> arguments, kj::StringPtr firstLine,
      kj::LowLevelAsyncIoProvider& io, kj::UnixEventPort& port);
  ~ChildProcess() noexcept(false);
  KJ_DISALLOW_COPY(ChildProcess);

  const kj::String name;

  // Writes to the child's standard input. Dropping the stream closes the child's input.
  kj::Own<kj::AsyncOutputStream> input;
  // The streams that the child writes to. Each can be taken once.
  kj::Own<kj::AsyncInputStream> output;
  kj::Own<kj::AsyncInputStream> errors;

  // Resolves to the status of wait() when the child has ended. Call once, and drop the promise
  // before this object.
  kj::Promise<int> ended();
  // Sends SIGTERM to the child's group, and waits until the child has ended or `grace` has passed.
  // Then kills the processes of this machine that the child had started, whatever their group.
  // Blocks the thread. For programs that need time to end processes on other machines, which the
  // destructor cannot kill.
  void terminate(kj::Duration grace);
  // Sends a signal to the child, unless it has ended.
  void signal(int number) const;
  // Returns how many killed children had not ended when their destructors stopped waiting. Each was
  // named in a warning.
  static uint leftBehind();
  // Whether a signal has stopped the child and it has not continued since.
  bool isStopped() const;

private:
  kj::Maybe<pid_t> pid;  // null once the child was waited for
  kj::Promise<int> exit;
};

}  // namespace runner
