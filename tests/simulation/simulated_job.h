// tests/simulation/simulated_job.h: one job of real roles, under a virtual clock, network and disk.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/roles/role_options.h"
#include "tests/simulation/dice.h"

namespace simulation {

// What happens to a job.
struct Fault {
  enum Kind {
    KILL_WORKER,
    KILL_SERVER,
    KILL_COORDINATOR,
    KILL_LAUNCHER,   // and with it all roles; then the run is resumed
    KILL_AT_CHANGE,  // the coordinator, at a change of the disk, and with it all roles
    LOSE_POWER,      // at a moment
    LOSE_POWER_AT_CHANGE,
    FREEZE,  // a role stops, and wakes up later
    CUT,     // a role is cut off from all others for a while
    BREAK_CONNECTION,
    FILL_DISK,  // no checkpoint can be written for a while
    BREAK_DISK,
    MOVE_DATE,
    KINDS
  };
  Kind kind;
  double at;          // which part of an undisturbed job is done, 0 to 1
  uint role;          // which of the roles that may be meant
  kj::Duration time;  // of FREEZE, CUT and MOVE_DATE
};

extern const char* const FAULT_NAMES[Fault::KINDS];

// How a job is simulated. All of it follows from the seed, so that a job can be repeated.
struct Plan {
  uint64_t seed = 0;
  size_t variant = 0;    // which experiment
  kj::Duration slowest;  // the longest time that a piece of data travels
  kj::Vector<Fault> faults;

  // Draws a plan for one of `variants` experiments.
  static Plan draw(uint64_t seed, size_t variants);
  Plan clone() const;
};

kj::String KJ_STRINGIFY(const Plan& plan);

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
