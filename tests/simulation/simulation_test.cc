// Simulated jobs end as nobody had disturbed them, and mistakes are found.
#include <doctest/doctest.h>
#include <stdlib.h>

#include "tests/simulation/campaign.h"

namespace simulation {
namespace {

TEST_CASE("jobs that lose roles, connections and power end as if nobody had disturbed them") {
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

TEST_CASE("jobs that have shown mistakes in the program end well") {
  Campaign campaign;
  // A worker was lost at the end of an epoch (1212, 1684, 2153, 2536), or while it stood still
  // (1870, 10755). A job went on from a checkpoint without one of its workers (1260). A run
  // repeated a loss before the coordinator had heard that others had begun (10466). A checkpoint
  // lacked a part (101889). A new worker was lost before it had begun (104637). A worker
  // woke up when another one had its place (307645).
  for (uint64_t seed: {1212, 1260, 1684, 1870, 2153, 2536, 10466, 10755, 101889, 104637, 307645}) {
    KJ_IF_MAYBE(violation, campaign.run(seed)) {
      FAIL_CHECK(kj::str(violation->variant, ", ", violation->plan, "\n", violation->what).cStr());
    }
  }
}

TEST_CASE("a job is the same each time that its seed is simulated") {
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

TEST_CASE("a disk that ignores fsync() is found") {
  Work work;
  work.jobs = 1000;
  work.untilFound = true;
  work.mistakes.skipsSyncs = true;
  kj::String what;
  auto counts = simulateAll(work, [&](const Violation& violation) {
    what = kj::str(violation.what);
    // A power loss shows it, and perhaps a fault that delays the sync.
    CHECK(violation.plan.faults.size() <= 2);
  });
  MESSAGE("found after ", counts.jobs, " jobs");
  CHECK(counts.violations == 1);
  CHECK(what.startsWith("failed: the run was saved at step "));
}

}  // namespace
}  // namespace simulation
