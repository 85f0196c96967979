#include "runner/system/interrupts.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <signal.h>

namespace runner {

kj::Array<int> interrupts() {
  kj::Vector<int> signals;
  signals.add(SIGINT);
  signals.add(SIGTERM);
  struct sigaction hangUp;
  KJ_SYSCALL(::sigaction(SIGHUP, nullptr, &hangUp));
  if (hangUp.sa_handler != SIG_IGN) signals.add(SIGHUP);
  return signals.releaseAsArray();
}

kj::StringPtr reasonOfInterrupt(int signal) {
  switch (signal) {
    case SIGINT:
      return "received SIGINT (Ctrl-C)";
    case SIGHUP:
      return "received SIGHUP (its terminal was closed)";
    default:
      return "received SIGTERM";
  }
}

}  // namespace runner
