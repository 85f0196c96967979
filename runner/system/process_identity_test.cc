#include "runner/system/process_identity.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <unistd.h>

#include "runner/system/machine.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

TEST_CASE("ProcessIdentity: finds the process itself, and not another one with its pid") {
  auto own = ProcessIdentity::of(::getpid());
  CHECK(own.pid == ::getpid());
  CHECK(own.isHere());
  CHECK(own.open() != nullptr);
  // A process that has the same pid later, or on another machine.
  auto later = ProcessIdentity::of(::getpid());
  later.begun_ticks++;
  CHECK(later.isHere());
  CHECK(later.open() == nullptr);
  auto elsewhere = ProcessIdentity::of(::getpid());
  elsewhere.boot = kj::str("another boot");
  CHECK_FALSE(elsewhere.isHere());
  CHECK(elsewhere.open() == nullptr);
  auto none = ProcessIdentity();
  CHECK_FALSE(none.isHere());
  CHECK(none.open() == nullptr);
}

TEST_CASE("sendSignal and waitForEnd: end another process, and then do nothing") {
  tests::Command sleeper({"sh", "-c", "echo there; exec sleep 1000"});
  // Before its first word it may still be this program.
  REQUIRE(sleeper.waitForOutput("there"));
  auto process = KJ_ASSERT_NONNULL(ProcessIdentity::of(sleeper.pid()).open());
  CHECK_FALSE(waitForEnd(process, 0));
  CHECK(sendSignal(process, SIGTERM) == 0);
  CHECK(waitForEnd(process, tests::PATIENCE_S));
  CHECK(sleeper.wait().signal == SIGTERM);
  CHECK(sendSignal(process, SIGTERM) == 0);
  CHECK(ProcessIdentity::of(sleeper.pid()).open() == nullptr);
}

}  // namespace
}  // namespace runner
