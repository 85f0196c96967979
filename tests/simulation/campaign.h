// tests/simulation/campaign.h: many simulated jobs, and their results.
#pragma once

#include <kj/function.h>
#include <kj/vector.h>

#include "tests/simulation/simulated_job.h"

namespace simulation {

// An experiment whose jobs are simulated.
struct Variant {
  kj::StringPtr name;
  bool isExact;  // its bits do not depend on time
  runner::LoadedExperiment loaded;
  Expected expected;
};

// A job that did not end as it should.
struct Violation {
  Plan plan;  // with as few faults as possible
  kj::StringPtr variant;
  kj::String what;
  kj::String errors;
};

// Counts over jobs.
struct Counts {
  uint64_t jobs = 0;
  uint64_t violations = 0;
  uint64_t restarts = 0;
  uint64_t resumptions = 0;
  uint64_t interruptions = 0;
  uint64_t leftBehind = 0;
  uint64_t changed = 0;  // jobs that continued without lost workers, or took new ones
  uint64_t faults[Fault::KINDS] = {};
  double virtual_s = 0;

  void add(const Counts& other);
};

// The experiments and where they run. One at a time in a process.
class Campaign {
public:
  // Makes the data set, and runs every experiment once without faults.
  explicit Campaign(Mistakes mistakes = {});
  ~Campaign() noexcept(false);
  KJ_DISALLOW_COPY(Campaign);

  // Runs the job that follows from `seed`. Returns the violation, or null.
  kj::Maybe<Violation> run(uint64_t seed);
  // Does the same for a plan that was not drawn.
  kj::Maybe<Violation> run(Plan plan);
  // Returns the number of the experiment with this name, for a plan. Throws if no experiment has
  // it.
  size_t variantOf(kj::StringPtr name) const;
  // Runs the job that follows from `seed`, and returns all facts about it.
  Ended repeat(uint64_t seed);

  const Counts& counts() const { return counted; }

private:
  kj::Maybe<kj::String> wrongIn(const Plan& plan, Ended& ended);
  kj::Maybe<kj::String> wrongWithChanges(Variant& variant, Ended& ended);
  void shrink(Violation& violation);

  const Mistakes mistakes;
  kj::String folder, root;
  kj::Vector<Variant> all;
  kj::Vector<bool> continues;  // of each of them: whether it continues without lost workers
  Counts counted;
};

// Which jobs to simulate.
struct Work {
  uint64_t first = 1;  // the seed of the first one
  uint64_t jobs = 1000;
  uint processes = 1;       // that share them
  double seconds = 0;       // 0: no limit
  bool untilFound = false;  // each process stops at its first violation
  Mistakes mistakes{};
};

// Simulates the jobs, each in one of the processes. Calls `found` for each violation, in the
// process that has found it.
Counts simulateAll(const Work& work, kj::FunctionParam<void(const Violation&)> found);

}  // namespace simulation
