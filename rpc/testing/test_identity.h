// rpc/testing/test_identity.h: the identities of both ends of a connection in a test.
#pragma once

#include "rpc/wire/proof.h"

namespace rpc {

// One for all roles of a test.
inline const Identity& testIdentity() {
  static const Identity IDENTITY{kj::str("test"), Secret::random()};
  return IDENTITY;
}

}  // namespace rpc
