#include "tools/bench_process.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
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
