// tests/simulation/plan.h: the faults of a simulated job.
#pragma once

#include <kj/string.h>
#include <kj/time.h>
#include <kj/vector.h>

#include "tests/simulation/dice.h"

namespace simulation {

// A fault that happens to a job.
struct Fault {
  enum Kind {
    KILL_WORKER,
    KILL_SERVER,
    KILL_COORDINATOR,
    KILL_LAUNCHER,   // and with it all roles; then the run is resumed
    KILL_AT_SEND,    // the role that is about to send something
    KILL_AT_CHANGE,  // the coordinator, at a change of the disk, and with it all roles
    LOSE_POWER,      // at a moment
    LOSE_POWER_AT_CHANGE,
    FREEZE,                // a role stops, and wakes up later
    CUT,                   // a role is cut off from all others for a while
    CUT_FROM_COORDINATOR,  // and the others still reach it
    BREAK_CONNECTION,
    FILL_DISK,   // no checkpoint can be written for a while
    BREAK_DISK,  // no event reaches the disk for a while
    STALL_DISK,  // no checkpoint is complete before a while has passed
    MOVE_DATE,
    INTERRUPT,  // SIGTERM to the launcher, and a second one after a while. Then the run is resumed
    LEAVE,      // SIGTERM to a worker. Only in jobs that continue without lost workers
    KINDS
  };
  Kind kind;
  double at;          // after which part of an undisturbed job, from 0 to 1
  uint role;          // which of the roles that the fault may hit
  kj::Duration time;  // how long it lasts. Of MOVE_DATE: how far
};

extern const char* const FAULT_NAMES[Fault::KINDS];

// How a job is simulated. Everything follows from the seed, so that a job can be repeated.
struct Plan {
  uint64_t seed = 0;
  size_t variant = 0;    // which experiment
  kj::Duration slowest;  // the longest time that a piece of data travels
  kj::Vector<Fault> faults;

  // Draws a plan for one of the experiments. Each entry is true if that experiment continues
  // without lost workers.
  static Plan draw(uint64_t seed, kj::ArrayPtr<const bool> continues);
  // Whether nothing but faults of this kind happens.
  bool hasOnly(Fault::Kind kind) const;
  Plan clone() const;
};

kj::String KJ_STRINGIFY(const Plan& plan);

}  // namespace simulation
