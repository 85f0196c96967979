// runner/reason.h: what a user is told of an exception.
#pragma once

#include <kj/exception.h>
#include <kj/string.h>

namespace runner {

// The description on one line, without what RPC puts in front of it. Where it is only the system's
// word for something that ran out, the way out is added.
kj::String reasonOf(const kj::Exception& exception);

}  // namespace runner
