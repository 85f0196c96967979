// A role that is stopped for a while and then wakes up changes no result, whether its job has
// replaced it meanwhile or not. RUNS is the number of small jobs, which run several at a time.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <signal.h>
#include <stdio.h>

#include <atomic>

#include "tests/faults/losses.h"
#include "tests/text.h"

namespace tests {
namespace {

// Stops, in seconds, that are shorter or longer than the silence time-outs below.
constexpr double STOPS_S[] = {3, 12};
constexpr kj::StringPtr TIMEOUTS[] = {
    "cluster.silence_timeout_s=2"_kj, "cluster.silence_timeout_s=5"_kj};
constexpr uint AT_A_TIME = 4;

struct Frozen {
  LossFigures figures;
  uint replaced = 0, same = 0;
  kj::Vector<kj::String> differences;
};

void freezeOne(const SmallJob& job, uint number, Frozen& result) {
  std::mt19937 dice(number);
  double stop_s = STOPS_S[number % kj::size(STOPS_S)];
  kj::Vector<kj::StringPtr> settings;
  settings.addAll(job.settings);
  settings.add(TIMEOUTS[number / 2 % kj::size(TIMEOUTS)]);
  Run run(SMALL_JOB, settings);
  LossWatch watch(run.folder, result.figures);
  // The job was alone in its undisturbed run. Here it shares the machine, and may take longer.
  watch.lookFor(run.command, 2 * job.seconds * (dice() % 10000) / 10000);
  auto roles = run.roles();
  while (roles.size() == 0 && watch.lookFor(run.command, 0.01)) roles = run.roles();
  if (roles.size() > 0) {
    pid_t role = roles[dice() % roles.size()].pid;
    watch.lose();
    ::kill(role, SIGSTOP);
    watch.lookFor(run.command, stop_s);
    for (auto& each: run.roles()) {
      if (each.pid == role) ::kill(role, SIGCONT);
    }
  } else {
    result.figures.tooLate++;
  }
  watch.lookFor(run.command, PATIENCE_S);
  auto difference = job.difference(run.command.wait(0), run.folder);
  result.replaced += watch.noticed();
  result.same += difference.size() == 0;
  if (difference.size() > 0) result.differences.add(kj::str("run ", number, ": ", difference));
}

TEST_CASE("a role that is stopped at a random moment and continues later changes no result") {
  uint runs = runsOr(4);
  auto jobs = trainSmallJobs();
  std::atomic<uint> next = 0;
  kj::MutexGuarded<Frozen> all;
  {
    kj::Vector<kj::Own<kj::Thread>> threads;
    for (uint i = 0; i < AT_A_TIME; i++) {
      threads.add(kj::heap<kj::Thread>([&]() {
        for (uint number = next++; number < runs; number = next++) {
          Frozen one;
          auto freeze = [&]() { freezeOne(jobs[number % jobs.size()], number, one); };
          KJ_IF_MAYBE(e, kj::runCatchingExceptions(freeze)) {
            one.differences.add(kj::str("run ", number, ": ", e->getDescription()));
          }
          auto lock = all.lockExclusive();
          lock->figures.add(one.figures);
          lock->replaced += one.replaced;
          lock->same += one.same;
          for (auto& difference: one.differences) lock->differences.add(kj::mv(difference));
        }
      }));
    }
  }
  auto& result = all.getWithoutLock();
  for (auto& difference: result.differences) FAIL_CHECK(difference);
  CHECK(result.same == runs);
  CHECK(result.figures.count() > 0);
  ::printf(
      "%u of %u runs as an undisturbed one, %u restarts\n", result.same, runs, result.replaced);
  result.figures.print();
}

}  // namespace
}  // namespace tests
