#include "runner/roles/disk_work.h"

#include <kj/thread.h>

namespace runner {

kj::Promise<void> besideLoop(kj::Maybe<const OneThread&> oneThread, kj::Function<void()> work) {
  auto paf = kj::newPromiseAndCrossThreadFulfiller<void>();
  kj::Function<void()> all = [work = kj::mv(work), fulfiller = kj::mv(paf.fulfiller)]() mutable {
    KJ_IF_MAYBE(failure, kj::runCatchingExceptions([&]() { work(); })) {
      fulfiller->reject(kj::mv(*failure));
    } else {
      fulfiller->fulfill();
    }
  };
  KJ_IF_MAYBE(shared, oneThread) {
    shared->runLater(kj::mv(all));
    return kj::mv(paf.promise);
  }
  // The thread may fail to start.
  return kj::evalNow([&]() { return paf.promise.attach(kj::heap<kj::Thread>(kj::mv(all))); });
}

}  // namespace runner
