// A job with cluster.on_loss = "restart" continues after each lost role, and trains the same
// weights as an undisturbed job. RUNS is the number of small jobs that lose roles at random
// moments.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdio.h>

#include "tests/faults/failure.h"
#include "tests/faults/losses.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr kj::StringPtr RESTARTS = "cluster.on_loss=restart"_kj;
constexpr kj::StringPtr AGAIN = "All roles are started again"_kj;

struct Loss {
  kj::StringPtr after;  // a line of the log
  kj::StringPtr role;
  uint index;
  int signal;
};

TEST_CASE(
    "a job that loses one role after the other trains the same weights as an undisturbed job") {
  constexpr Loss LOSSES[] = {
      {"Epoch[0] Batch [100]"_kj, "server"_kj, 0, SIGKILL},
      {"Epoch[0] Batch [300]"_kj, "worker"_kj, 0, SIGKILL},
      {"Epoch[0] Batch [500]"_kj, "coordinator"_kj, 0, SIGKILL},
      {"Epoch[1] Batch [200]"_kj, "worker"_kj, 1, SIGSTOP},
      {"Epoch[1] Batch [400]"_kj, "server"_kj, 1, SIGKILL},
  };
  auto alone = train(SHORT);
  Run run(SHORT, {RESTARTS, "checkpoint.every_steps=50", "cluster.silence_timeout_s=2"});
  for (auto& loss: LOSSES) {
    CAPTURE(loss.after);
    bool came = run.command.waitForOutput(loss.after);
    INFO(run.command.errors());
    REQUIRE(came);
    KJ_SYSCALL(::kill(run.role(loss.role, loss.index).pid, loss.signal));
  }
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
  CHECK(countOf(ended.errors, AGAIN) == kj::size(LOSSES));
  checkNothingLeft(run);
  // No line is missing or occurs twice.
  auto lines = linesOf(run.read("log.txt"));
  CHECK(lines.size() == linesOf(readFile(kj::str(alone.folder, "/log.txt"))).size());
  CHECK(countOf(run.read("events.jsonl"), "\"started\"") == 1);
}

TEST_CASE("a job that is lost five times without progress ends, and says so") {
  Run run(SHORT, {RESTARTS, "checkpoint.every_steps=100000"});
  REQUIRE(run.command.waitForOutput("Epoch[0] Batch [100]"));
  pid_t last = 0;
  while (!run.command.waitForErrors("5 attempts in a row", 0)) {
    REQUIRE_FALSE(run.command.hasEnded());
    auto roles = run.roles();
    if (roles.size() == 0 || roles[0].pid == last) continue;
    last = roles[0].pid;
    ::kill(last, SIGKILL);
  }
  auto ended = run.command.wait(FAILS_WITHIN_S);
  checkFailed(ended, {"killed by signal 9", "5 attempts in a row"});
  CHECK(countOf(ended.errors, AGAIN) == 5);
  checkNothingLeft(run);
}

TEST_CASE(
    "an interrupted run is saved, and --resume then trains the weights of an undisturbed run") {
  auto alone = train(SHORT);
  Run run(SHORT);
  REQUIRE(run.command.waitForOutput("Epoch[0] Batch [200]"));
  run.command.kill(SIGTERM);
  CHECK(run.command.wait(FAILS_WITHIN_S).exitCode == 130);
  auto runs = kj::str(run.folder, "/../..");
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  kj::StringPtr words[] = {RUNNER, "run", SHORT, "--runs", runs, "--resume"};
  auto ended = Command(words, {.environment = environment}).wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, alone.weightsSha256));
  CHECK(contains(run.read("events.jsonl"), "\"continued\""));
  CHECK_FALSE(contains(run.read("events.jsonl"), "\"interrupted\""));
}

TEST_CASE("jobs that lose one to three roles at random moments train the same weights") {
  uint runs = runsOr(4), same = 0;
  std::mt19937 dice(runs);
  auto jobs = trainSmallJobs();
  LossFigures figures;
  for (uint i = 0; i < runs; i++) {
    auto& job = jobs[i % jobs.size()];
    auto moments_s = momentsWithin(job.seconds, 1 + dice() % 3, dice);
    Run run(SMALL_JOB, job.settings);
    LossWatch watch(run.folder, figures);
    double passed_s = 0;
    for (double moment_s: moments_s) {
      watch.lookFor(run.command, moment_s - passed_s);
      passed_s = moment_s;
      auto roles = run.roles();
      if (roles.size() == 0) {
        figures.tooLate++;
        continue;
      }
      watch.lose();
      ::kill(roles[dice() % roles.size()].pid, SIGKILL);
    }
    watch.lookFor(run.command, PATIENCE_S);
    auto difference = job.difference(run.command.wait(0), run.folder);
    CAPTURE(i);
    CHECK(difference == "");
    same += difference.size() == 0;
  }
  CHECK(figures.count() > 0);
  ::printf("%u of %u runs as an undisturbed one\n", same, runs);
  figures.print();
}

}  // namespace
}  // namespace tests
