// tests/faults/failure.h: checks how a run that cannot continue ends.
#pragma once

#include "tests/run.h"

namespace tests {

// A run that does not end by itself: mlp, two servers, two workers.
constexpr kj::StringPtr ENDLESS = "tests/faults/endless.toml"_kj;
// The time within which a failed run ends: see docs/reliability.md.
constexpr uint FAILS_WITHIN_S = 10;

using Words = kj::ArrayPtr<const kj::StringPtr>;

// Returns the lines of `text` that begin with `error: `.
kj::Array<kj::String> errorLines(kj::StringPtr text);

// Checks that the exit code is 1, and that there is one error line, which contains all of `words`.
void checkFailed(const Ended& ended, Words words);

// Checks that these have the same cause as the error line of `ended`: the last event, log.txt, the
// log of each role that joined, the tables and the report.
void checkRecorded(const Run& run, const Ended& ended);

// Checks that no process has the run's folder in its command line.
void checkNothingLeft(const Run& run);

// Starts a run, and returns it in the middle of its training.
kj::Own<Run> startedRun(kj::StringPtr file, Words settings = nullptr);

}  // namespace tests
