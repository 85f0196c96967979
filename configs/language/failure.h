// configs/language/failure.h: throws the errors of a run. The text is one plain sentence.
#pragma once

#include <kj/debug.h>
#include <kj/string.h>

namespace configs {

// Throws a FAILED exception whose description is the arguments, concatenated. The text must name
// the failed action with its value, the cause, and what to do.
template <typename... Params>
[[noreturn]] void fail(Params&&... params) {
  KJ_FAIL_REQUIRE(kj::str(kj::fwd<Params>(params)...));
}

}  // namespace configs
