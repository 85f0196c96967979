// runner/roles/one_thread.h: lets all roles of a job share one thread, and a clock and a network
// that are not those of the machine. Simulations need this (tests/simulation).
#pragma once

#include <kj/async-io.h>
#include <kj/function.h>

namespace runner {

// Replaces the threads of one role, and the machine's event port. The role runs in a fiber. The
// other fibers of the same thread run the other roles. Call all methods on that thread.
class OneThread {
public:
  virtual ~OneThread() noexcept(false) = default;

  // Returns the event loop of the thread. Its `waitScope` is that of the role's fiber.
  virtual kj::AsyncIoContext newIo() const = 0;
  // Lets everything else on the thread go on for a moment.
  virtual void yield() const = 0;
  // Runs `work` soon, as a second thread of the role would. If the role ends first, `work` may
  // never run.
  virtual void runLater(kj::Function<void()> work) const = 0;
  // Resolves when a worker is to leave the job, as SIGTERM asks a process.
  virtual kj::Promise<void> askedToLeave() const = 0;
  // Ends the role as SIGKILL ends a process.
  [[noreturn]] virtual void die() const = 0;
  // Notes that a worker makes step `step` with the records of `draws`: see io::Batch.
  virtual void note(uint64_t step, kj::ArrayPtr<const uint64_t> draws) const = 0;
};

}  // namespace runner
