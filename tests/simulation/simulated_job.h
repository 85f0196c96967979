// tests/simulation/simulated_job.h: one job of real roles, under a virtual clock, network and disk.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "tests/comparable_events.h"
#include "tests/simulation/account.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/plan.h"

namespace simulation {

// The results of an experiment without faults.
struct Expected {
  kj::String weightsSha256;
  tests::ComparableEvents events;
  Account account;
  Extent extent;
};

// How a simulated job ended.
struct Ended {
  kj::Maybe<kj::String> failure;  // why it did not end well
  Expected result;
  bool isAsExpected = false;  // its events are those of an undisturbed job. `result` has no account
  uint restarts = 0;          // by the launcher
  uint resumptions = 0;       // after the launcher was killed
  uint interruptions = 0;     // of these, after SIGTERM
  uint leftBehind = 0;        // roles that kept running after they were replaced
  kj::String errors;          // messages of roles and launcher
  kj::String lastEvents;      // of a run that did not end well
};

// Deliberate bugs that the simulation must find.
struct Mistakes {
  bool skipsSyncs = false;
};

// Runs `loaded` in `root`, an empty folder. `expected` is that of the same experiment without
// faults: it says when faults happen. If `membershipOf` is not empty, workers leave and join at the
// same steps as in the run in that folder. Returns when no role is left.
Ended simulate(const runner::LoadedExperiment& loaded, kj::StringPtr root, const Plan& plan,
    const Expected& expected, Mistakes mistakes = {}, kj::StringPtr membershipOf = "");

}  // namespace simulation
