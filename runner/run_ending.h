// runner/run_ending.h: the last event of a run that did not finish: why it ended.
#pragma once

#include <kj/string.h>

#include "runner/run_log.h"

namespace runner {

enum class Ending { FAILED, INTERRUPTED };

// Appends the event to `log`. `reason` is what the user is told, in one sentence. Throws if a file
// cannot be written.
void appendEnding(RunLog& log, Ending ending, kj::StringPtr reason);

// The same for a launcher, which knows more about the cause than any role, once the roles are gone:
// see RunLog::reopen().
void recordEnding(
    const RunFolder& folder, const LogStyle& style, Ending ending, kj::StringPtr reason);

}  // namespace runner
