// rpc/wait_list.h: promises that wait for an event.
#pragma once

#include <kj/async.h>
#include <kj/vector.h>

namespace rpc {

// Promises that wait for an event, which may happen more than once. For one thread.
class WaitList {
public:
  // Resolves at the next wakeAll(). Rejects if this list is destroyed before that.
  kj::Promise<void> wait() {
    auto paf = kj::newPromiseAndFulfiller<void>();
    waiting.add(kj::mv(paf.fulfiller));
    return kj::mv(paf.promise);
  }
  // The event has happened: resolves all promises that are waiting.
  void wakeAll() {
    for (auto& fulfiller: waiting) fulfiller->fulfill();
    waiting.clear();
  }

private:
  kj::Vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;
};

}  // namespace rpc
