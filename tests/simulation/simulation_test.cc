// Simulated jobs end like undisturbed ones, and the simulation finds deliberate bugs.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <initializer_list>

#include "tests/simulation/campaign.h"

namespace simulation {
namespace {

TEST_CASE("jobs that lose roles, connections and power end like undisturbed ones") {
  Work work;
  if (auto jobs = ::getenv("JOBS")) {
    work.jobs = kj::StringPtr(jobs).parseAs<uint64_t>();
    work.processes = 2;
  } else {
    work.jobs = 250;
  }
  auto counts = simulateAll(work, [](const Violation& violation) {
    FAIL_CHECK(kj::str(violation.variant, ", ", violation.plan, "\n", violation.what).cStr());
  });
  CHECK(counts.jobs == work.jobs);
  CHECK(counts.violations == 0);
  CHECK(counts.restarts > 0);
  CHECK(counts.resumptions > 0);
  CHECK(counts.interruptions > 0);
  CHECK(counts.leftBehind > 0);
  CHECK(counts.changed > 0);
  for (auto kind: kj::indices(counts.faults)) {
    MESSAGE(counts.faults[kind], " times: ", FAULT_NAMES[kind]);
    CHECK(counts.faults[kind] > 0);
  }
}

TEST_CASE("jobs that once revealed bugs of the program end well") {
  struct Known {
    uint64_t seed;
    kj::StringPtr experiment;
    std::initializer_list<Fault> faults;
    kj::Duration slowest = 4 * kj::MILLISECONDS;
  };
  const Known KNOWN[] = {
      // A worker was lost at the end of an epoch.
      {1212, "continue, lookahead"_kj,
          {{Fault::BREAK_CONNECTION, 0.017970265953134335, 1, 19692 * kj::MILLISECONDS},
              {Fault::KILL_AT_SEND, 0.64102392388650797, 7, 8148 * kj::MILLISECONDS}}},
      {1684, "continue"_kj, {{Fault::KILL_AT_SEND, 0.84188019070612885, 3, 3 * kj::MILLISECONDS}}},
      {2153, "continue"_kj, {{Fault::FREEZE, 0.46944241170498135, 3, 26078 * kj::MILLISECONDS}}},
      {2536, "continue, lookahead"_kj,
          {{Fault::KILL_WORKER, 0.84499105867089164, 2, 103 * kj::MILLISECONDS}}},
      // Two workers were lost in the last step of an epoch, and a third began the next step before
      // it learned of the second one.
      {53159, "continue, logged often"_kj,
          {{Fault::KILL_WORKER, 0.81022674366147573, 5, 7106 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.18734280626791133, 2, 1806 * kj::MILLISECONDS},
              {Fault::LEAVE, 0.83196256466346263, 1, 1079 * kj::MILLISECONDS}}},
      // The job was over before a loss was in its events.
      {92620, "continue, dist_ssp"_kj,
          {{Fault::CUT, 0.77751372578071987, 4, 19266 * kj::MILLISECONDS},
              {Fault::LOSE_POWER_AT_CHANGE, 0.13201425406462886, 7, 19953 * kj::MILLISECONDS}}},
      // A worker was lost while it was stopped.
      {1870, "continue"_kj,
          {{Fault::KILL_WORKER, 0.59261709347941083, 4, 2108 * kj::MILLISECONDS},
              {Fault::FREEZE, 0.84471037314169239, 0, 2643 * kj::MILLISECONDS},
              {Fault::STALL_DISK, 0.2697434409071553, 7, 4944 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.81130736734385323, 6, 15099 * kj::MILLISECONDS}}},
      {10755, "continue, 2bit"_kj,
          {{Fault::FREEZE, 0.49093298446314104, 2, 237 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.87351269744022786, 3, 20574 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.80411155856788408, 2, 22970 * kj::MILLISECONDS}}},
      // A job continued from a checkpoint without one of its workers.
      {1260, "continue"_kj,
          {{Fault::KILL_COORDINATOR, 0.64719743006194286, 5, 25085 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.085425316059835721, 0, 13214 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.45295734016112577, 2, 9035 * kj::MILLISECONDS}}},
      // A run repeated a loss before the coordinator had learned that others had begun.
      {10466, "continue"_kj,
          {{Fault::KILL_LAUNCHER, 0.75786368496096868, 5, 1017 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.32064060090032254, 2, 1 * kj::MILLISECONDS},
              {Fault::LOSE_POWER, 0.92080776100914097, 6, 9428 * kj::MILLISECONDS}}},
      // A checkpoint lacked a part.
      {101889, "continue"_kj,
          {{Fault::KILL_WORKER, 0.39157107081294429, 4, 13213 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.35441856854470533, 6, 12105 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.61581123657752768, 3, 6286 * kj::MILLISECONDS}}},
      // A new worker was lost before it had begun.
      {104637, "continue, 2bit"_kj,
          {{Fault::FREEZE, 0.33041600724332876, 2, 259 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.54954295150893218, 6, 383 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.41241252305938336, 3, 1162 * kj::MILLISECONDS},
              {Fault::FREEZE, 0.95238337150535435, 5, 16838 * kj::MILLISECONDS}}},
      // A worker woke up after another one had taken its place.
      {307645, "continue, lookahead"_kj,
          {{Fault::STALL_DISK, 0.17284183460234592, 3, 25090 * kj::MILLISECONDS},
              {Fault::FREEZE, 0.84072222340628255, 3, 11052 * kj::MILLISECONDS}}},
      // A worker joined at the end of an epoch and was lost before its first step.
      {3018861, "continue, dist_async"_kj,
          {{Fault::CUT, 0.99564685704840172, 4, 12076 * kj::MILLISECONDS},
              {Fault::LEAVE, 0.21982271681099674, 1, 1987 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.71199849709185414, 1, 260 * kj::MILLISECONDS}}},
      // A worker was lost while the others waited for the end of an epoch to be counted.
      {5016344, "continue, 2bit"_kj,
          {{Fault::KILL_WORKER, 0.59601791030761664, 1, 12586 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.61426358537455583, 4, 15902 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.23266215722853, 0, 1096 * kj::MILLISECONDS}}},
      // A run repeated the loss of a worker before it had sent the initial state of another one.
      {6011906, "continue, logged often"_kj,
          {{Fault::KILL_WORKER, 0.284646944847459, 3, 23624 * kj::MILLISECONDS},
              {Fault::LEAVE, 0.14969611755989631, 7, 410 * kj::MILLISECONDS}}},
      // Of two workers lost in one epoch, the loss of the one that was further ahead was known
      // first.
      {6011778, "continue, dist_ssp"_kj,
          {{Fault::FREEZE, 0.95213801766993711, 3, 10516 * kj::MILLISECONDS},
              {Fault::FREEZE, 0.95376916091159125, 5, 23496 * kj::MILLISECONDS}}},
      // A process that the launcher had replaced woke up and took its successor's place.
      {5003727, "continue, dist_ssp"_kj,
          {{Fault::KILL_WORKER, 0.90058008027359038, 0, 7467 * kj::MILLISECONDS},
              {Fault::FREEZE, 0.59462545674483114, 4, 114 * kj::MILLISECONDS},
              {Fault::LEAVE, 0.53336248291280042, 1, 5887 * kj::MILLISECONDS},
              {Fault::KILL_WORKER, 0.96048478725738806, 3, 51 * kj::MILLISECONDS}},
          40 * kj::MILLISECONDS},
      // A job was saved before a step that a lost worker had already pushed.
      {4008936, "continue, logged often"_kj,
          {{Fault::LOSE_POWER, 0.14324760436276962, 6, 4774 * kj::MILLISECONDS},
              {Fault::CUT_FROM_COORDINATOR, 0.87152403409309176, 5, 28023 * kj::MILLISECONDS},
              {Fault::FREEZE, 0.266339361244723, 7, 3842 * kj::MILLISECONDS}},
          250 * kj::MICROSECONDS},
  };
  Campaign campaign;
  for (auto& known: KNOWN) {
    Plan plan;
    plan.seed = known.seed;
    plan.variant = campaign.variantOf(known.experiment);
    plan.slowest = known.slowest;
    for (auto& fault: known.faults) plan.faults.add(fault);
    KJ_IF_MAYBE(violation, campaign.run(kj::mv(plan))) {
      FAIL_CHECK(kj::str(violation->variant, ", ", violation->plan, "\n", violation->what).cStr());
    }
  }
}

TEST_CASE("the same seed always gives the same simulated job") {
  Campaign campaign;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    CAPTURE(seed);
    auto once = campaign.repeat(seed), again = campaign.repeat(seed);
    CHECK(once.result.extent.seconds == again.result.extent.seconds);
    CHECK(once.result.extent.changes == again.result.extent.changes);
    CHECK(once.result.weightsSha256 == again.result.weightsSha256);
    CHECK(once.result.events == again.result.events);
    CHECK(once.restarts == again.restarts);
    CHECK(once.resumptions == again.resumptions);
    CHECK(once.result.account.members == again.result.account.members);
  }
}

TEST_CASE("the simulation finds out that a disk ignores fsync()") {
  Work work;
  work.jobs = 1000;
  work.untilFound = true;
  work.mistakes.skipsSyncs = true;
  kj::String what;
  auto counts = simulateAll(work, [&](const Violation& violation) {
    what = kj::str(violation.what);
    // Only a power failure reveals the bug, perhaps with a fault that delays the sync.
    CHECK(violation.plan.faults.size() <= 2);
  });
  MESSAGE("found after ", counts.jobs, " jobs");
  CHECK(counts.violations == 1);
  CHECK(what.startsWith("failed: the run was saved at step "));
}

}  // namespace
}  // namespace simulation
