#include "tools/bench/process.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/text.h"

namespace tools {
namespace {

Ended shell(kj::StringPtr script) {
  return runProgram(kj::arr(kj::str("sh"), kj::str("-c"), kj::str(script)));
}

TEST_CASE("runProgram: returns output, errors and exit code separately") {
  auto ended = shell("echo figures; echo complaint >&2; exit 3");
  CHECK(ended.output == "figures\n");
  CHECK(ended.errors == "complaint\n");
  CHECK(ended.exitCode == 3);
  CHECK(shell("kill -9 $$").exitCode == 128 + 9);
  CHECK(runProgram(kj::arr(kj::str("/no/such/program"))).exitCode == 127);
}

TEST_CASE("runProgram: the program does not inherit the thread settings of this one") {
  REQUIRE(::setenv("OMP_WAIT_POLICY", "passive", 1) == 0);
  CHECK(shell("echo \"$OMP_WAIT_POLICY.\"").output == ".\n");
}

TEST_CASE(
    "runProgram: Ctrl-C ends the program first and then throws, so that the caller can clean up") {
  auto script = kj::str("kill -INT ", ::getpid(), "; kill -INT $$; exit 0");
  auto thrown = kj::runCatchingExceptions([&]() { shell(script); });
  CHECK(KJ_ASSERT_NONNULL(thrown).getDescription() == "interrupted");
  CHECK(shell("exit 3").exitCode == 3);
}

TEST_CASE("AskedProgram: answers again and again until it ends") {
  AskedProgram program(kj::arr(kj::str("sh"), kj::str("-c"),
      kj::str("for i in 1 2; do read question; echo answer $i; done; echo tired >&2; exit 3")));
  for (auto answer: {"answer 1\n", "answer 2\n"}) {
    auto ended = program.ask(60);
    CHECK(ended.exitCode == 0);
    CHECK(ended.output == answer);
  }
  auto ended = program.ask(60);
  CHECK(ended.exitCode == 3);
  CHECK(ended.errors == "tired\n");
}

TEST_CASE(
    "AskedProgram: a program that does not answer in time is ended, with everything that it "
    "started") {
  // A process that the program has started keeps the pipe open longest.
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  kj::AutoCloseFd reading(ends[0]);
  {
    kj::AutoCloseFd writing(ends[1]);
    AskedProgram program(
        kj::arr(kj::str("sh"), kj::str("-c"), kj::str("cat /dev/zero >/dev/null & wait")));
    auto ended = program.ask(1);
    CHECK(ended.exitCode == 124);
    CHECK(ended.errors == "took more than 1 s");
  }
  char c;
  CHECK(::read(reading, &c, 1) == 0);
}

TEST_CASE("numberIn: finds a number in JSON by its key") {
  kj::StringPtr json = "{\"per_s\": 12.5, \"s\":3, \"word\":\"x\"}";
  CHECK(numberIn(json, "per_s").orDefault(0) == 12.5);
  CHECK(numberIn(json, "s").orDefault(0) == 3);
  CHECK(numberIn(json, "word") == nullptr);
  CHECK(numberIn(json, "absent") == nullptr);
}

TEST_CASE("BusyCore: uses a processor while it lives, and not afterwards") {
  rusage before, after;
  {
    BusyCore busy;
    // Other programs may run, too. But while this process gets some time, the busy one gets some as
    // well.
    KJ_REQUIRE(shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done").exitCode == 0);
    KJ_SYSCALL(::getrusage(RUSAGE_CHILDREN, &before));
  }
  KJ_SYSCALL(::getrusage(RUSAGE_CHILDREN, &after));
  auto ms = [](const rusage& usage) {
    return usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000;
  };
  CHECK(ms(after) > ms(before));
  CHECK(::waitpid(-1, nullptr, 0) == -1);
}

}  // namespace
}  // namespace tools
