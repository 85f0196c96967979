#include "rpc/wire.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace rpc {

void limitUnsent(kj::AsyncIoStream& stream) {
  KJ_IF_MAYBE(fd, stream.getFd()) {
    // Fails where there is no TCP.
    (void)::setsockopt(
        *fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &UNSENT_BYTES_MAX, sizeof(UNSENT_BYTES_MAX));
  }
}

kj::Promise<void> Wire::count(kj::Promise<void> write) {
  writing++;
  return write.then([this]() {
    if (--writing > 0) return;
    KJ_IF_MAYBE(fulfiller, waiting) {
      (*fulfiller)->fulfill();
    }
    waiting = nullptr;
  });
}

kj::Promise<void> Wire::whenTaken() {
  // Messages follow one another through the event queue: when that is empty, one is being written,
  // or all have been.
  return kj::evalLast([this]() -> kj::Promise<void> {
    if (writing == 0) return kj::READY_NOW;
    auto paf = kj::newPromiseAndFulfiller<void>();
    waiting = kj::mv(paf.fulfiller);
    return paf.promise.then([this]() { return whenTaken(); });
  });
}

}  // namespace rpc
