// tests/comparable_events.h: what a run has recorded, so that two runs can be compared.
#pragma once

#include <kj/string.h>

#include "runner/logs/run_folder.h"

namespace tests {

// Returns the events of the run in `folder`, one line each, without what differs from one run to
// the next: times, process ids, checkpoints. Those of each role follow one another.
kj::String comparableEvents(const runner::RunFolder& folder);

}  // namespace tests
