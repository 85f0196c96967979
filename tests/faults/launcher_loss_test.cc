// A run whose `runner run` is killed leaves no role behind, and `--resume` continues it. RUNS is
// the number of small jobs that lose their launcher at random moments.
#include <doctest/doctest.h>
#include <signal.h>
#include <stdio.h>

#include "tests/faults/losses.h"
#include "tests/text.h"

namespace tests {
namespace {

kj::Own<Command> resume(const SmallJob& job, kj::StringPtr runs) {
  kj::Vector<kj::StringPtr> words;
  words.addAll(
      std::initializer_list<kj::StringPtr>{RUNNER, "run", SMALL_JOB, "--runs", runs, "--resume"});
  for (auto setting: job.settings) {
    words.add("--set");
    words.add(setting);
  }
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  return kj::heap<Command>(words, Command::Surroundings{.environment = environment});
}

TEST_CASE("a run whose launcher is killed at random moments is resumed to the same weights") {
  constexpr uint ROLES_END_WITHIN_S = 5;
  uint runs = runsOr(3), same = 0;
  std::mt19937 dice(runs);
  auto jobs = trainSmallJobs();
  LossFigures figures;
  for (uint i = 0; i < runs; i++) {
    auto& job = jobs[i % jobs.size()];
    CAPTURE(i);
    auto folder = newFolder();
    // A launcher that is killed immediately leaves no run that can be resumed. Then --resume begins
    // a second one.
    auto newest = kj::str(folder, "/losses/last");
    LossWatch watch(newest, figures);
    auto run = resume(job, folder);
    for (uint kills = 1 + dice() % 3; kills > 0; kills--) {
      if (!watch.lookFor(*run, job.seconds * (dice() % 10000) / 10000)) break;
      watch.lose();
      run->kill(SIGKILL);
      run->wait();
      CHECK(haveEnded(processesWith(kj::str("--folder=", folder)), ROLES_END_WITHIN_S));
      watch.look(*run);
      watch.notice();
      run = resume(job, folder);
    }
    watch.lookFor(*run, PATIENCE_S);
    auto difference = job.difference(run->wait(0), newest);
    CHECK(difference == "");
    CHECK(processesWith(folder).size() == 0);
    same += difference.size() == 0;
  }
  CHECK(figures.count() > 0);
  ::printf("%u of %u runs as an undisturbed one\n", same, runs);
  figures.print();
}

}  // namespace
}  // namespace tests
