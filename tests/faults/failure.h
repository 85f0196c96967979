// tests/faults/failure.h: how a run that cannot go on must end.
#pragma once

#include "tests/run.h"

namespace tests {

// A run that somebody has to end: mlp, two servers, two workers.
constexpr kj::StringPtr ENDLESS = "tests/faults/endless.toml"_kj;
// What the project promises.
constexpr uint FAILS_WITHIN_S = 10;

using Words = kj::ArrayPtr<const kj::StringPtr>;

// The lines of `text` that begin with `error: `.
kj::Array<kj::String> errorLines(kj::StringPtr text);

// Checks: exit code 1, and one line of error that holds all of `words`.
void checkFailed(const Ended& ended, Words words);

// Checks that everything in the run's folder states the cause that `ended` states: the last event,
// log.txt, the log of each role that joined, the tables and the report.
void checkRecorded(const Run& run, const Ended& ended);

// Checks that no process has the run's folder in its command line.
void checkNothingLeft(const Run& run);

// A run in the middle of its training.
kj::Own<Run> startedRun(kj::StringPtr file, Words settings = nullptr);

}  // namespace tests
