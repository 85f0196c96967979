// runner/system/reason.h: what a user reads about an exception.
#pragma once

#include <kj/exception.h>
#include <kj/string.h>
#include <stdint.h>

namespace runner {

// Returns the description on one line, without the words that RPC puts in front of it. If it is
// only the system's text for a resource that ran out, adds the way out.
kj::String reasonOf(const kj::Exception& exception);

// Returns "last reported step: 214" for a run or a role that was lost. Steps are reported now and
// then, so that the last step may have been a later one. 0 means that no step was reported.
kj::String lastReportedStep(uint64_t step);

}  // namespace runner
