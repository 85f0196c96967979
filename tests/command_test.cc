#include "tests/command.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/exception.h>
#include <signal.h>

#include "tests/text.h"

namespace tests {
namespace {

Ended shell(kj::StringPtr script) {
  return Command({"sh", "-c", script}).wait();
}

TEST_CASE("Command: returns exit code, output and errors") {
  auto ended = shell("echo out; echo err >&2; exit 7");
  CHECK(ended.exitCode == 7);
  CHECK(ended.signal == 0);
  CHECK(ended.output == "out\n");
  CHECK(ended.errors == "err\n");
}

TEST_CASE("Command: output larger than a pipe is read completely") {
  auto ended = shell("head -c 1000000 /dev/zero; head -c 300000 /dev/zero >&2");
  CHECK(ended.output.size() == 1000000);
  CHECK(ended.errors.size() == 300000);
}

TEST_CASE("Command: returns the signal that killed the program") {
  auto ended = shell("kill -9 $$");
  CHECK(ended.exitCode == -1);
  CHECK(ended.signal == SIGKILL);
}

TEST_CASE("Command: has the environment and the folder that it was given, and no input") {
  auto folder = newFolder();
  kj::StringPtr changes[] = {"COLOUR=blue", "HOME=/nowhere"};
  Command command({"sh", "-c", "cat; echo $COLOUR $HOME; pwd"}, {folder, changes});
  auto ended = command.wait();
  CHECK(ended.output == kj::str("blue /nowhere\n", folder, "\n"));
}

TEST_CASE("Command: a missing program ends with exit code 127") {
  CHECK(Command({"/no/such/program"}).wait().exitCode == 127);
}

TEST_CASE("Command: output can be waited for while the program runs") {
  Command command({"sh", "-c", "echo ready; exec tail -f /dev/null"});
  CHECK(command.waitForOutput("ready"));
  CHECK_FALSE(command.waitForOutput("never", 0));
  command.kill(SIGTERM);
  CHECK_FALSE(command.waitForOutput("never"));
  CHECK(command.wait().signal == SIGTERM);
}

TEST_CASE("Command: a program that does not end in time is an error, and is killed") {
  kj::Array<Process> processes;
  {
    Command command({"sh", "-c", "echo ready; exec tail -f /dev/null; : the one"});
    REQUIRE(command.waitForOutput("ready"));
    processes = kj::heapArray<Process>(1);
    processes[0].pid = command.pid();
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { command.wait(0); })) {
      CHECK(e->getDescription().size() > 0);
    } else {
      FAIL("it ended");
    }
    CHECK_FALSE(haveEnded(processes, 0));
  }
  CHECK(haveEnded(processes, PATIENCE_S));
}

}  // namespace
}  // namespace tests
