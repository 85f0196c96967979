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

TEST_CASE("a program's output, errors and exit code come back apart") {
  auto ended = shell("echo figures; echo complaint >&2; exit 3");
  CHECK(ended.output == "figures\n");
  CHECK(ended.errors == "complaint\n");
  CHECK(ended.exitCode == 3);
  CHECK(shell("kill -9 $$").exitCode == 128 + 9);
  CHECK(runProgram(kj::arr(kj::str("/no/such/program"))).exitCode == 127);
}

TEST_CASE("a program does not get what this one's threads are told") {
  REQUIRE(::setenv("OMP_WAIT_POLICY", "passive", 1) == 0);
  CHECK(shell("echo \"$OMP_WAIT_POLICY.\"").output == ".\n");
}

TEST_CASE("Ctrl-C ends the program that runs, then is thrown, so that things are put away") {
  auto script = kj::str("kill -INT ", ::getpid(), "; kill -INT $$; exit 0");
  auto thrown = kj::runCatchingExceptions([&]() { shell(script); });
  CHECK(KJ_ASSERT_NONNULL(thrown).getDescription() == "interrupted");
  CHECK(shell("exit 3").exitCode == 3);
}

TEST_CASE("a program that stays is asked again and again, until it ends") {
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

TEST_CASE("a program that does not answer in time is ended, with all that it has started") {
  // The last process that keeps the pipe open is one that the program started.
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

TEST_CASE("a number is found in JSON by its key") {
  kj::StringPtr json = "{\"per_s\": 12.5, \"s\":3, \"word\":\"x\"}";
  CHECK(numberIn(json, "per_s").orDefault(0) == 12.5);
  CHECK(numberIn(json, "s").orDefault(0) == 3);
  CHECK(numberIn(json, "word") == nullptr);
  CHECK(numberIn(json, "absent") == nullptr);
}

TEST_CASE("a busy core takes a processor's time as long as it lives, and is gone then") {
  rusage before, after;
  {
    BusyCore busy;
    // Whatever else runs, it gets some of the time in which this takes some.
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
