// runner/logs/run_ending.h: how a run ended: what its last event says.
#pragma once

#include <kj/string.h>

#include "runner/logs/run_log.h"

namespace runner {

// How a run ended: one of the three, or none if nobody waited for its end.
struct Outcome {
  kj::Maybe<kj::String> weightsSha256;  // it has finished
  kj::Maybe<kj::String> failure;        // one sentence: role, cause, way out
  kj::Maybe<kj::String> interruption;   // what interrupted it
};

enum class Ending { FAILED, INTERRUPTED };

// Appends the run's last event to `log`. `reason` is what the user is told, in one sentence. Throws
// if a file cannot be written, and if the run has its last event.
void appendEnding(RunLog& log, Ending ending, kj::StringPtr reason);

// The same for a launcher, which knows more about the cause than any role, once the roles are gone:
// see RunLog::reopen(). A run that has its last event keeps it. Returns what the last event says,
// which may be that the run finished before the launcher saw it fail or was interrupted. Messages,
// tables and the exit code follow what this returns. Throws if a file cannot be written.
Outcome recordEnding(
    const RunFolder& folder, const LogStyle& style, Ending ending, kj::StringPtr reason);

}  // namespace runner
