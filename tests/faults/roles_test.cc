// Roles that are killed, stopped, or late. A run that cannot continue ends within 10 s with exit
// code 1 and one line that begins with `error: ` and names the role, the cause and what to do. It
// leaves no process behind.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/faults/failure.h"
#include "tests/text.h"

namespace tests {
namespace {

struct Fault {
  kj::StringPtr role;
  uint index;
  kj::StringPtr name;
};
constexpr Fault ROLES[] = {
    {"coordinator"_kj, 0, "coordinator"_kj},
    {"server"_kj, 0, "server 0"_kj},
    {"server"_kj, 1, "server 1"_kj},
    {"worker"_kj, 0, "worker 0"_kj},
    {"worker"_kj, 1, "worker 1"_kj},
};

TEST_CASE("a killed role ends the run, which says who was killed and by what") {
  for (auto& fault: ROLES) {
    CAPTURE(fault.name);
    auto run = startedRun(ENDLESS);
    KJ_SYSCALL(::kill(run->role(fault.role, fault.index).pid, SIGKILL));
    auto ended = run->command.wait(FAILS_WITHIN_S);
    checkFailed(ended, {fault.name, "killed by signal 9", "; last reported step: ", "dmesg"});
    checkRecorded(*run, ended);
    checkNothingLeft(*run);
  }
}

// Returns the number after the last `mark` in `text`.
uint64_t lastNumber(kj::StringPtr text, kj::StringPtr mark) {
  uint64_t number = 0;
  for (auto at = ::strstr(text.cStr(), mark.cStr()); at != nullptr;
       at = ::strstr(at + 1, mark.cStr())) {
    number = ::strtoull(at + mark.size(), nullptr, 10);
  }
  return number;
}

TEST_CASE("the step that a failure names is not older than the log lines above it") {
  auto run = startedRun(ENDLESS);
  REQUIRE(run->command.waitForOutput("Batch [100]"));
  KJ_SYSCALL(::kill(run->role("server", 1).pid, SIGKILL));
  auto ended = run->command.wait(FAILS_WITHIN_S);
  // Batches count from the beginning of the first epoch.
  REQUIRE(contains(ended.output, "Epoch[0] Batch ["));
  REQUIRE_FALSE(contains(ended.output, "Epoch[1] Batch ["));
  auto shown = lastNumber(ended.output, "Batch [");
  CHECK(lastNumber(ended.errors, "; last reported step: ") >= shown);
}

TEST_CASE("if a role is killed before its first step, the message names no step") {
  Run run(ENDLESS);
  for (;;) {
    auto roles = run.roles();
    if (roles.size() > 0) {
      KJ_SYSCALL(::kill(roles[0].pid, SIGKILL));
      break;
    }
    REQUIRE_FALSE(run.command.waitForErrors("error: ", 0));
  }
  auto ended = run.command.wait(FAILS_WITHIN_S);
  checkFailed(ended, {"killed by signal 9", "; no step was reported yet; "});
  checkRecorded(run, ended);
}

TEST_CASE("servers that share a process are lost together, and the run names them") {
  auto run = startedRun(ENDLESS, {"cluster.servers_per_process=2"});
  CHECK(run->roles().size() == 4);
  KJ_SYSCALL(::kill(run->role("server", 0).pid, SIGKILL));
  auto ended = run->command.wait(FAILS_WITHIN_S);
  checkFailed(ended, {"servers 0 to 1", "killed by signal 9", "dmesg"});
  checkNothingLeft(*run);
}

TEST_CASE("a stopped process of several servers is named as one process") {
  auto run = startedRun(ENDLESS, {"cluster.servers_per_process=2", "cluster.silence_timeout_s=2"});
  KJ_SYSCALL(::kill(run->role("server", 0).pid, SIGSTOP));
  auto ended = run->command.wait(FAILS_WITHIN_S);
  checkFailed(ended, {"the process of servers 0 to 1 has been silent for 2 s"});
  checkRecorded(*run, ended);
  checkNothingLeft(*run);
}

TEST_CASE("a stopped role ends the run, which says who was silent and for how long") {
  for (auto& fault: ROLES) {
    CAPTURE(fault.name);
    auto run = startedRun(ENDLESS, {"cluster.silence_timeout_s=2"});
    KJ_SYSCALL(::kill(run->role(fault.role, fault.index).pid, SIGSTOP));
    auto ended = run->command.wait(FAILS_WITHIN_S);
    checkFailed(ended, {fault.name, "silent for 2 s", "cluster.silence_timeout_s"});
    checkRecorded(*run, ended);
    checkNothingLeft(*run);
  }
}

TEST_CASE("allreduce: a worker that is killed or stopped ends the run, which names it") {
  for (int signal: {SIGKILL, SIGSTOP}) {
    CAPTURE(signal);
    auto run = startedRun(
        ENDLESS, {"kvstore.mode=allreduce", "cluster.servers=0", "cluster.silence_timeout_s=2"});
    CHECK(run->roles().size() == 3);
    KJ_SYSCALL(::kill(run->role("worker", 1).pid, signal));
    auto ended = run->command.wait(FAILS_WITHIN_S);
    checkFailed(ended, {"worker 1", signal == SIGKILL ? "killed by signal 9" : "silent for 2 s"});
    checkNothingLeft(*run);
  }
}

TEST_CASE(
    "over TCP or Unix sockets, a server that is killed or stopped ends the run, which names it") {
  for (auto transport: {"kvstore.transport=tcp"_kj, "kvstore.transport=unix"_kj}) {
    for (int signal: {SIGKILL, SIGSTOP}) {
      CAPTURE(transport);
      CAPTURE(signal);
      auto run = startedRun(ENDLESS, {transport, "cluster.silence_timeout_s=2"});
      KJ_SYSCALL(::kill(run->role("server", 1).pid, signal));
      auto ended = run->command.wait(FAILS_WITHIN_S);
      checkFailed(ended, {"server 1", signal == SIGKILL ? "killed by signal 9" : "silent for 2 s"});
      checkNothingLeft(*run);
    }
  }
}

TEST_CASE("a stopped role is noticed within 10 s with the default time-out") {
  auto run = startedRun(ENDLESS);
  KJ_SYSCALL(::kill(run->role("worker", 1).pid, SIGSTOP));
  auto ended = run->command.wait(FAILS_WITHIN_S);
  checkFailed(ended, {"worker 1", "silent for 5 s", "cluster.silence_timeout_s"});
  checkNothingLeft(*run);
}

TEST_CASE("a run whose folder is renamed while it trains ends and says so") {
  for (auto setting: {"checkpoint.every_s=0"_kj, "checkpoint.every_s=0.1"_kj}) {
    CAPTURE(setting);
    auto run = startedRun(ENDLESS, {setting});
    KJ_SYSCALL(::rename(run->folder.cStr(), kj::str(run->folder, "-renamed").cStr()));
    auto ended = run->command.wait(FAILS_WITHIN_S);
    auto words = kj::str("the folder of the run, ", run->folder,
        ", or its events.jsonl, was removed or renamed during the run");
    checkFailed(ended, {words});
    checkNothingLeft(*run);
    CHECK(::access(run->folder.cStr(), F_OK) != 0);
  }
}

TEST_CASE(
    "if a table cannot be written, stdout still has the tables, and an error names the file") {
  auto finished = startedRun("tests/faults/short.toml");
  KJ_SYSCALL(::mkdir(kj::str(finished->folder, "/table.csv").cStr(), 0777));
  auto ended = finished->command.wait();
  checkFailed(ended, {finished->folder, "/table.csv", "exists but is not a regular file"});
  CHECK(contains(ended.output, "| epoch | "));
  CHECK(contains(ended.output, "\nweights sha256="));

  auto killed = startedRun(ENDLESS);
  KJ_SYSCALL(::mkdir(kj::str(killed->folder, "/table.md").cStr(), 0777));
  KJ_SYSCALL(::kill(killed->role("worker", 0).pid, SIGKILL));
  ended = killed->command.wait(FAILS_WITHIN_S);
  checkFailed(ended, {"worker 0 was killed by signal 9"});
  CHECK(contains(ended.errors, "warning: the run has no tables and no report: cannot write "));
}

TEST_CASE("a launcher that is killed leaves no role behind") {
  auto run = startedRun(ENDLESS);
  auto roles = run->roles();
  CHECK(roles.size() == 5);
  run->command.kill(SIGKILL);
  CHECK(run->command.wait().signal == SIGKILL);
  CHECK(haveEnded(roles, 2));
}

TEST_CASE("runner table shows a run as running until its process has ended") {
  auto run = startedRun(ENDLESS);
  auto table = [&]() {
    auto into = newFolder();
    return Command({RUNNER, "table", run->folder, "--into", into}).wait().output;
  };
  auto during = table();
  run->command.kill(SIGKILL);
  run->command.wait();
  auto after = table();
  INFO(during, after);
  CHECK(contains(during, kj::str(" running: process ", run->command.pid(), "\n")));
  CHECK(contains(after, " unfinished: "));
}

}  // namespace
}  // namespace tests
