// runner/roles/disk_work.h: work that may wait for the disk, beside an event loop.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include "runner/roles/one_thread.h"

namespace runner {

// Calls `work` on a new thread, or later on this one if `oneThread` is set. A full or remote disk
// can take longer than cluster.silence_timeout_s, and roles are lost if their coordinator does not
// answer meanwhile. Resolves after `work`. Rejects with what it threw, or if no thread can start.
// If the promise is dropped, waits for `work`.
kj::Promise<void> besideLoop(kj::Maybe<const OneThread&> oneThread, kj::Function<void()> work);

}  // namespace runner
