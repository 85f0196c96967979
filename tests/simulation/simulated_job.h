// tests/simulation/simulated_job.h: one job of real roles, under a virtual clock, network and disk.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "tests/simulation/plan.h"

namespace simulation {

// What an experiment comes to if nobody disturbs it.
struct Expected {
  kj::String weightsSha256;
  kj::String events;     // without times
  kj::String counts;     // steps, images and pushes
  double seconds = 0;    // that it takes
  uint64_t changes = 0;  // of the disk
};

// How a simulated job ended.
struct Ended {
  kj::Maybe<kj::String> failure;  // why it did not end well
  Expected result;
  uint restarts = 0;     // by the launcher
  uint resumptions = 0;  // after the launcher was gone
  uint leftBehind = 0;   // roles that went on after they were replaced
  kj::String errors;     // what roles and launcher said
};

// Deliberate mistakes that the simulation must find.
struct Mistakes {
  bool skipsSyncs = false;
};

// Runs `loaded` in `root`, an empty folder. `expected` is that of the same experiment without
// faults: it says when faults happen. Returns when no role is left.
Ended simulate(const runner::LoadedExperiment& loaded, kj::StringPtr root, const Plan& plan,
    const Expected& expected, Mistakes mistakes = {});

}  // namespace simulation
