// runner/logs/run_ending.h: the last event of a run, which says how the run ended.
#pragma once

#include <kj/string.h>

#include "runner/logs/run_log.h"

namespace runner {

// How a run ended. At most one member is set. None is set if nobody waited for the end.
struct Outcome {
  kj::Maybe<kj::String> weightsSha256;  // set if the run finished
  kj::Maybe<kj::String> failure;        // one sentence: the role, the cause, and what to do
  kj::Maybe<kj::String> interruption;   // what interrupted the run
};

// The endings that a launcher or a coordinator records. The coordinator writes `finished`, and a
// sweep writes `stopped`, elsewhere.
enum class Ending { FAILED, INTERRUPTED };

// Appends the run's last event to `log`. `reason` is one sentence for the user. Throws if a file
// cannot be written, or if the run already has its last event.
void appendEnding(RunLog& log, Ending ending, kj::StringPtr reason);

// Does the same for a launcher, which knows more about the cause than any role. Call it when all
// roles have ended: see RunLog::reopen(). If the run already has a last event, keeps that event.
// Returns the outcome according to the last event, because the run may have finished before the
// launcher saw a failure or was interrupted. Messages, tables and the exit code follow the result.
// Throws if a file cannot be written.
Outcome recordEnding(
    const RunFolder& folder, const LogStyle& style, Ending ending, kj::StringPtr reason);

// Returns the SHA-256 of the weights that the run in `folder` recorded when it finished. Null if it
// has not finished, if there is no run, or if its events cannot be read.
kj::Maybe<kj::String> recordedWeightsOf(const RunFolder& folder);

// Removes the ending of a run that is resumed: its last event, if isLast(). Otherwise, if the new
// launch failed before the coordinator had continued the events, the old ending would look like
// that of the new launch. Throws with path and cause.
void removeEnding(const RunFolder& folder);

}  // namespace runner
