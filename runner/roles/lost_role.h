// runner/roles/lost_role.h: failures of calls that only say that the other role is gone. Whoever
// watches the other role's connection reports its loss.
#pragma once

#include <kj/async.h>

namespace runner {

// Throws `e` again, unless it only says that the other role is gone.
void unlessLost(kj::Exception&& e);

// Returns `promise`, which also resolves if the other role is gone.
kj::Promise<void> evenIfLost(kj::Promise<void> promise);
// Returns `promise`, which never resolves if the other role is gone.
template <typename T>
kj::Promise<T> neverIfLost(kj::Promise<T> promise) {
  return promise.catch_([](kj::Exception&& e) -> kj::Promise<T> {
    unlessLost(kj::mv(e));
    return kj::NEVER_DONE;
  });
}

}  // namespace runner
