// configs/language/failure.h: how the program says that the world is wrong: one plain sentence, as
// an exception.
#pragma once

#include <kj/debug.h>
#include <kj/string.h>

namespace configs {

// Throws a FAILED exception whose description is the arguments put together. Say what was being
// done, to what, the cause, and the way out.
template <typename... Params>
[[noreturn]] void fail(Params&&... params) {
  KJ_FAIL_REQUIRE(kj::str(kj::fwd<Params>(params)...));
}

}  // namespace configs
