// runner/roles/lost_role.h: handles calls that fail only because the other role has ended. The code
// that watches the other role's connection reports the loss.
#pragma once

#include <kj/async.h>

namespace runner {

// Throws `e` again, unless it only means that the other role has ended.
void unlessLost(kj::Exception&& e);

// Returns `promise`, which also resolves if the other role has ended.
kj::Promise<void> evenIfLost(kj::Promise<void> promise);
// Returns `promise`, which never resolves if the other role has ended.
template <typename T>
kj::Promise<T> neverIfLost(kj::Promise<T> promise) {
  return promise.catch_([](kj::Exception&& e) -> kj::Promise<T> {
    unlessLost(kj::mv(e));
    return kj::NEVER_DONE;
  });
}

}  // namespace runner
