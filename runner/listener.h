// runner/listener.h: where a role of this machine can be reached.
#pragma once

#include <kj/async-io.h>
#include <kj/string.h>

namespace runner {

// A port of the loopback that the system chooses.
struct Listener {
  kj::Own<kj::ConnectionReceiver> receiver;
  kj::String address;

  // Outside of the callbacks of the event loop: it waits.
  explicit Listener(kj::AsyncIoContext& io) {
    auto any = io.provider->getNetwork().parseAddress("127.0.0.1", 0).wait(io.waitScope);
    receiver = any->listen();
    address = kj::str("127.0.0.1:", receiver->getPort());
  }
};

}  // namespace runner
