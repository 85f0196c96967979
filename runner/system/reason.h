// runner/system/reason.h: turns exceptions into messages for the user.
#pragma once

#include <kj/exception.h>
#include <kj/string.h>
#include <stdint.h>

namespace runner {

// Returns the description on one line, without the prefix that RPC adds. If it is only the system's
// text for an exhausted resource, adds what to do.
kj::String reasonOf(const kj::Exception& exception);

// Returns "last reported step: 214", for messages about a run or a role that was lost. Steps are
// reported only from time to time, so the last step may have been a later one. 0 means that no step
// was reported.
kj::String lastReportedStep(uint64_t step);

}  // namespace runner
