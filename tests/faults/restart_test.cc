// A job with cluster.on_loss = "restart" goes on after each loss, and trains the weights of a job
// that lost nobody. With RUNS, so many small jobs lose roles at random moments.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "tests/faults/failure.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr kj::StringPtr RESTARTS = "cluster.on_loss=restart"_kj;
constexpr kj::StringPtr AGAIN = "All roles are started again"_kj;

uint occurrences(kj::StringPtr text, kj::StringPtr part) {
  uint count = 0;
  for (auto at = ::strstr(text.cStr(), part.cStr()); at != nullptr;
       at = ::strstr(at + part.size(), part.cStr())) {
    count++;
  }
  return count;
}

struct Loss {
  kj::StringPtr after;  // a line of the log
  kj::StringPtr role;
  uint index;
  int signal;
};

TEST_CASE("a job that loses one role after the other trains the weights of a job that loses none") {
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
  CHECK(occurrences(ended.errors, AGAIN) == kj::size(LOSSES));
  checkNothingLeft(run);
  // No line is missing or stands there twice.
  auto lines = linesOf(run.read("log.txt"));
  CHECK(lines.size() == linesOf(readFile(kj::str(alone.folder, "/log.txt"))).size());
  CHECK(occurrences(run.read("events.jsonl"), "\"started\"") == 1);
}

TEST_CASE("a job that is lost five times without coming further ends, and says so") {
  Run run(SHORT, {RESTARTS, "checkpoint.every_steps=100000"});
  REQUIRE(run.command.waitForOutput("Epoch[0] Batch [100]"));
  pid_t last = 0;
  while (!run.command.waitForErrors("in a row without coming further", 0)) {
    auto roles = run.roles();
    if (roles.size() == 0 || roles[0].pid == last) continue;
    last = roles[0].pid;
    ::kill(last, SIGKILL);
  }
  auto ended = run.command.wait(FAILS_WITHIN_S);
  checkFailed(ended, {"killed by signal 9", "5 times in a row"});
  CHECK(occurrences(ended.errors, AGAIN) == 5);
  checkNothingLeft(run);
}

TEST_CASE("an interrupted run is saved first, and --resume trains the weights of an unbroken one") {
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

// In which part of a run a role was killed.
enum Phase { START_UP, TRAINING, VALIDATION, END, PHASES };
constexpr const char* PHASE_NAMES[] = {"start-up", "training", "validation", "end"};

Phase phaseOf(kj::StringPtr events) {
  if (!contains(events, "\"begun\"")) return START_UP;
  if (contains(events, "\"finished\"")) return END;
  if (contains(events, "\"ended\"")) return VALIDATION;
  return TRAINING;
}

struct Losses {
  uint kills[PHASES] = {};
  uint missed = 0;  // no role ran at that moment
};

// Kills roles of a run at the given moments.
void killAt(Run& run, kj::ArrayPtr<const double> moments_s, std::mt19937& dice, Losses& losses) {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  for (double moment_s: moments_s) {
    auto left = std::chrono::duration<double>(moment_s) - (Clock::now() - begin);
    auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
    if (left_ms > 0) ::poll(nullptr, 0, left_ms);
    auto roles = run.roles();
    if (roles.size() == 0) {
      losses.missed++;
      continue;
    }
    kj::String events;
    // The run may not have the file yet.
    kj::runCatchingExceptions([&]() { events = run.read("events.jsonl"); });
    losses.kills[phaseOf(events)]++;
    ::kill(roles[dice() % roles.size()].pid, SIGKILL);
  }
}

TEST_CASE("jobs that lose one to three roles at random moments train the same weights") {
  auto wanted = ::getenv("RUNS");
  uint runs = wanted == nullptr ? 4 : kj::StringPtr(wanted).parseAs<uint>();
  std::mt19937 dice(runs);
  constexpr kj::StringPtr FILE = "tests/faults/losses.toml"_kj;
  constexpr kj::StringPtr COMPRESSED[] = {"kvstore.compression={kind='2bit',threshold=0.01}"_kj};
  kj::ArrayPtr<const kj::StringPtr> variants[] = {nullptr, nullptr, COMPRESSED};
  kj::String expected[kj::size(variants)];
  double undisturbed_s = 0;
  for (uint i: kj::indices(variants)) {
    auto begin = std::chrono::steady_clock::now();
    expected[i] = train(FILE, variants[i]).weightsSha256;
    auto taken = std::chrono::steady_clock::now() - begin;
    undisturbed_s = std::chrono::duration<double>(taken).count();
  }
  Losses losses;
  uint restarts = 0, same = 0;
  for (uint i = 0; i < runs; i++) {
    CAPTURE(i);
    kj::Vector<double> moments_s;
    for (uint count = 1 + dice() % 3; count > 0; count--) {
      moments_s.add(undisturbed_s * (dice() % 10000) / 10000);
    }
    std::sort(moments_s.begin(), moments_s.end());
    Run run(FILE, variants[i % 3]);
    killAt(run, moments_s, dice, losses);
    auto ended = run.command.wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    CHECK(contains(ended.output, expected[i % 3]));
    same += contains(ended.output, expected[i % 3]);
    restarts += occurrences(ended.errors, AGAIN);
    checkNothingLeft(run);
  }
  ::printf("%u of %u runs with the same weights; %u restarts; kills:", same, runs, restarts);
  for (uint phase = 0; phase < PHASES; phase++) {
    ::printf(" %s %u", PHASE_NAMES[phase], losses.kills[phase]);
  }
  ::printf("; no role ran: %u\n", losses.missed);
}

}  // namespace
}  // namespace tests
