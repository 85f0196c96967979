// The last event of a run: there is one, and exit code, tables and messages agree with it,
// regardless of the run's last moments.
#include <doctest/doctest.h>
#include <errno.h>
#include <kj/debug.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/faults/failure.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
constexpr kj::StringPtr LAST_EVENTS[] = {
    "\"finished\":"_kj, "\"failed\":"_kj, "\"interrupted\":"_kj, "\"stopped\":"_kj};

bool hasEvents(const Run& run) {
  return ::access(kj::str(run.folder, "/events.jsonl").cStr(), R_OK) == 0;
}

// Returns when the run's events hold `word`. Throws if the run ends without it.
void waitForEvent(Run& run, kj::StringPtr word) {
  while (!hasEvents(run) || !contains(run.read("events.jsonl"), word)) {
    KJ_REQUIRE(!run.command.waitForErrors("error: ", 0), run.command.errors());
  }
}

// The word of the run's last event, such as `finished`. Checks that no event follows it, and that
// exit code and table say the same.
kj::String checkedEnd(const Run& run, const Ended& ended) {
  INFO("stderr:\n", ended.errors);
  kj::String found;
  auto events = run.read("events.jsonl");
  for (kj::StringPtr rest = events; rest.size() > 0;) {
    auto end = KJ_REQUIRE_NONNULL(rest.findFirst('\n'), "a torn line", rest);
    auto line = kj::heapString(rest.slice(0, end));
    INFO("an event after the last one: ", line);
    CHECK(found.size() == 0);
    for (auto word: LAST_EVENTS) {
      if (contains(line, word)) found = kj::heapString(word.slice(1, word.size() - 2));
    }
    rest = rest.slice(end + 1);
  }
  REQUIRE(found.size() > 0);
  CHECK(ended.exitCode == (found == "finished" ? 0 : found == "failed" ? 1 : 130));
  CHECK(contains(ended.output, "weights sha256=") == (found == "finished"));
  auto table = run.read("table.md");
  for (auto state: {"failed", "interrupted"}) {
    CHECK(contains(table, kj::str(" ", state, ": ")) == (found == state));
  }
  checkNothingLeft(run);
  return found;
}

TEST_CASE("a run that has finished stays finished if its launcher then gets a signal") {
  for (int signal: {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    auto run = startedRun(SHORT, {"train.epochs=1"});
    auto roles = run->roles();
    // The launcher learns of the end and of the signal at the same time.
    run->command.kill(SIGSTOP);
    waitForEvent(*run, "\"finished\":");
    CHECK(haveEnded(roles, FAILS_WITHIN_S));
    run->command.kill(signal);
    run->command.kill(SIGCONT);
    CHECK(checkedEnd(*run, run->command.wait(FAILS_WITHIN_S)) == "finished");
  }
}

TEST_CASE(
    "a role that is killed while it leaves a finished run is named, but does not fail the run") {
  for (uint attempt = 0;; attempt++) {
    // Most attempts come in time.
    REQUIRE(attempt < 50);
    auto run = startedRun(SHORT, {"train.epochs=1"});
    auto worker = run->role("worker", 1);
    waitForEvent(*run, "\"finished\":");
    ::kill(worker.pid, SIGKILL);
    auto ended = run->command.wait(FAILS_WITHIN_S);
    CHECK(checkedEnd(*run, ended) == "finished");
    if (!contains(ended.errors, "killed by signal 9")) continue;
    CHECK(contains(ended.errors, "warning: after the run had finished: worker 1 was killed"));
    break;
  }
}

TEST_CASE("workers that are stopped while their run finishes, and then continue, do not fail it") {
  // In some attempts a worker has left before it can be stopped.
  uint stopped = 0;
  for (uint attempt = 0; attempt < 20 && stopped < 4; attempt++) {
    // With a heartbeat every 200 ms, many workers are stopped while they wait for the answer to
    // one.
    auto run = startedRun(SHORT, {"train.epochs=1", "cluster.silence_timeout_s=1"});
    auto coordinator = kj::arr(run->role("coordinator", 0));
    auto workers = kj::arr(run->role("worker", 0), run->role("worker", 1));
    waitForEvent(*run, "\"finished\":");
    for (auto& worker: workers) ::kill(worker.pid, SIGSTOP);
    // The coordinator leaves without them.
    CHECK(haveEnded(coordinator, FAILS_WITHIN_S));
    stopped += !haveEnded(workers, 0);
    for (auto& worker: workers) ::kill(worker.pid, SIGCONT);
    auto ended = run->command.wait(FAILS_WITHIN_S);
    CHECK(checkedEnd(*run, ended) == "finished");
    CHECK_FALSE(contains(ended.errors, "warning: "));
  }
  CHECK(stopped > 0);
}

TEST_CASE("the last event of an inline run that is interrupted says so") {
  for (int signal: {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    auto run = startedRun(ENDLESS, {"cluster.launcher=inline", "log.every=1"});
    run->command.kill(signal);
    CHECK(checkedEnd(*run, run->command.wait(FAILS_WITHIN_S)) == "interrupted");
  }
}

TEST_CASE("the last event of an inline run that fails says so") {
  // The rate makes one worker diverge while the other one is still computing.
  Run run(SHORT, {"cluster.launcher=inline", "log.every=1", "train.optimizer.learning_rate=1e30"});
  CHECK(checkedEnd(run, run.command.wait()) == "failed");
}

TEST_CASE(
    "after a signal near the end of an inline run, exit code and tables match its last event") {
  for (auto moment: {"\"ended\":"_kj, "\"last\":true"_kj, "\"finished\":"_kj}) {
    CAPTURE(moment);
    auto run = startedRun(SHORT, {"cluster.launcher=inline", "train.epochs=1"});
    waitForEvent(*run, moment);
    run->command.kill(SIGINT);
    checkedEnd(*run, run->command.wait(FAILS_WITHIN_S));
  }
}

}  // namespace
}  // namespace tests
