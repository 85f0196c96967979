// runner/roles/one_thread.h: lets all roles of a job share one thread, with a simulated clock and
// network. Simulations need this (tests/simulation).
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
  // Lets everything else on the thread run for a moment.
  virtual void yield() const = 0;
  // Runs `work` soon, as a second thread of the role would. If the role ends first, `work` may
  // never run.
  virtual void runLater(kj::Function<void()> work) const = 0;
  // Resolves when a worker must leave the job. Stands for SIGTERM.
  virtual kj::Promise<void> askedToLeave() const = 0;
  // Ends the role like SIGKILL ends a process.
  [[noreturn]] virtual void die() const = 0;
  // Records that a worker makes step `step` with the records of `draws`: see io::Batch.
  virtual void note(uint64_t step, kj::ArrayPtr<const uint64_t> draws) const = 0;
};

}  // namespace runner
