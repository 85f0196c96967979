#include "rpc/wire/running_time.h"

namespace rpc {

kj::Duration RunningTime::passed() {
  auto now = timer.now();
  sum += kj::min(now - looked, GAP_MAX);
  looked = now;
  return sum;
}

kj::Promise<void> RunningTime::until(kj::Duration end) {
  auto left = end - passed();
  if (left <= 0 * kj::NANOSECONDS) return kj::READY_NOW;
  return timer.afterDelay(kj::min(left, LOOK_INTERVAL)).then([this, end]() { return until(end); });
}

}  // namespace rpc
