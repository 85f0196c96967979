// Processes that are stopped for longer than silence_timeout_s and then continue: by Ctrl-Z or by
// `docker pause`. A process that was stopped has received nothing, and must not regard others as
// silent.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>

#include "tests/faults/failure.h"
#include "tests/text.h"

namespace tests {
namespace {

// Enough events to fill the pipe to a launcher that does not read, so that the coordinator waits.
constexpr kj::StringPtr SETTINGS[] = {
    "cluster.silence_timeout_s=1"_kj, "log.every=1"_kj, "train.epochs=1"_kj};
constexpr kj::StringPtr SHORT = "tests/faults/short.toml"_kj;
// Several times the time-out. The test has to wait this long, because it tests the time-out itself.
constexpr uint STOPPED_S = 3;

kj::String weightsOf(const Ended& ended) {
  INFO("stderr:\n", ended.errors);
  REQUIRE(ended.exitCode == 0);
  constexpr kj::StringPtr MARK = "weights sha256="_kj;
  auto& text = ended.output;
  for (size_t i: kj::indices(text)) {
    if (text.slice(i).startsWith(MARK)) return kj::heapString(text.slice(i, i + MARK.size() + 64));
  }
  KJ_FAIL_REQUIRE("no weights", text);
}

// The weights of a run that nobody stopped.
kj::StringPtr undisturbed() {
  static const kj::String weights = weightsOf(Run(SHORT, SETTINGS).command.wait());
  return weights;
}

kj::Own<Run> started(kj::StringPtr setting) {
  kj::StringPtr settings[] = {SETTINGS[0], SETTINGS[1], SETTINGS[2], setting};
  return startedRun(SHORT, settings);
}

// Stops the launcher, and then `roles`, and lets them all continue after some seconds.
void freeze(Run& run, kj::ArrayPtr<const Process> roles) {
  run.command.kill(SIGSTOP);
  for (auto& role: roles) KJ_SYSCALL(::kill(role.pid, SIGSTOP));
  CHECK_FALSE(run.command.waitForErrors("error: ", STOPPED_S));
  for (auto& role: roles) KJ_SYSCALL(::kill(role.pid, SIGCONT));
  run.command.kill(SIGCONT);
}

TEST_CASE("a launcher that is stopped and continues carries its run to the same weights") {
  auto run = started("cluster.launcher=local");
  freeze(*run, nullptr);
  CHECK(weightsOf(run->command.wait()) == undisturbed());
}

TEST_CASE("an inline run that is stopped and continues trains the same weights") {
  auto run = started("cluster.launcher=inline");
  freeze(*run, nullptr);
  CHECK(weightsOf(run->command.wait()) == undisturbed());
}

TEST_CASE("a job that is stopped as a whole and continues trains the same weights") {
  for (auto transport: {"kvstore.transport=auto"_kj, "kvstore.transport=tcp"_kj}) {
    CAPTURE(transport);
    auto run = started(transport);
    auto roles = run->roles();
    CHECK(roles.size() == 5);
    freeze(*run, roles);
    CHECK(weightsOf(run->command.wait()) == undisturbed());
  }
}

// -------------------------------------------------------------------------------------------------
// Roles that are stopped alone, and too early for the coordinator to miss their heartbeats.

// Stops the role as soon as its process exists. False if it has joined already.
bool stopEarly(Run& run, kj::StringPtr role, kj::StringPtr begun) {
  auto words = kj::str("--role=", role);
  for (;;) {
    for (auto& process: run.roles()) {
      if (!contains(process.commandLine, words)) continue;
      KJ_SYSCALL(::kill(process.pid, SIGSTOP));
      Command({"true"}).wait();  // time for its earlier messages to arrive
      auto events = Command({"sh", "-c", kj::str("cat ", run.folder, "/events.jsonl")}).wait();
      return !contains(events.output, begun);
    }
    KJ_REQUIRE(!run.command.waitForErrors("error: ", 0), run.command.errors());
  }
}

TEST_CASE("a role that is stopped before it joins ends the run within 10 s, which says so") {
  struct Case {
    kj::StringPtr role;
    kj::StringPtr name;
    kj::StringPtr begun;
  };
  for (auto& each:
      {Case{"worker --index=1"_kj, "worker 1"_kj, "\"role\":\"worker\",\"index\":1,\"joined\""_kj},
          Case{"server --index=0"_kj, "server 0"_kj,
              "\"role\":\"server\",\"index\":0,\"joined\""_kj},
          Case{"coordinator"_kj, "coordinator"_kj, "\"started\""_kj}}) {
    CAPTURE(each.name);
    for (uint attempt = 0;; attempt++) {
      REQUIRE(attempt < 50);
      Run run(ENDLESS);
      if (!stopEarly(run, each.role, each.begun)) continue;
      auto ended = run.command.wait(FAILS_WITHIN_S);
      // It may have sent its request to join, which the coordinator then read.
      if (contains(run.read("events.jsonl"), each.begun)) continue;
      checkFailed(ended, {each.name, "was stopped by a signal before it joined", "for 5 s",
                             "cluster.silence_timeout_s"});
      checkNothingLeft(run);
      break;
    }
  }
}

}  // namespace
}  // namespace tests
