#include "runner/roles/disk_work.h"

#include <kj/thread.h>
#include <sys/resource.h>

namespace runner {

namespace {

// Ten times less processor time than a worker gets on the same core.
constexpr int NICENESS = 10;

}  // namespace

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
  kj::Function<void()> yielding = [all = kj::mv(all)]() mutable {
    // On Linux, this is the niceness of the calling thread alone.
    ::setpriority(PRIO_PROCESS, 0, NICENESS);
    all();
  };
  // The thread may fail to start.
  return kj::evalNow([&]() { return paf.promise.attach(kj::heap<kj::Thread>(kj::mv(yielding))); });
}

}  // namespace runner
