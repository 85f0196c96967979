#include "rpc/shared_memory/ring.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rpc {

void Sleeper::wait() const {
  // The kernel compares again. If a waker was faster, the word is 0 and the call returns
  // immediately.
  long result = ::syscall(SYS_futex, &word, FUTEX_WAIT, 1, nullptr, nullptr, 0);
  KJ_ASSERT(result == 0 || errno == EAGAIN || errno == EINTR, errno);
}

void Sleeper::wake() const {
  if (rouse()) ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void Sleeper::wakeAfterLoss() const {
  rouse();
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace rpc
