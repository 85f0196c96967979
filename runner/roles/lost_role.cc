#include "runner/roles/lost_role.h"

namespace runner {

void unlessLost(kj::Exception&& e) {
  if (e.getType() != kj::Exception::Type::DISCONNECTED) kj::throwFatalException(kj::mv(e));
}

kj::Promise<void> evenIfLost(kj::Promise<void> promise) {
  return promise.catch_([](kj::Exception&& e) { unlessLost(kj::mv(e)); });
}

}  // namespace runner
