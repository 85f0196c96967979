// runner/system/reason.h: what a user is told of an exception.
#pragma once

#include <kj/exception.h>
#include <kj/string.h>
#include <stdint.h>

namespace runner {

// The description on one line, without what RPC puts in front of it. Where it is only the system's
// word for something that ran out, the way out is added.
kj::String reasonOf(const kj::Exception& exception);

// "last reported step: 214": what is known of a run or a role that was lost. Steps are reported now
// and then, so the truth may be a little later. 0 means that none was reported yet.
kj::String lastReportedStep(uint64_t step);

}  // namespace runner
