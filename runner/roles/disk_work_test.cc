#include "runner/roles/disk_work.h"

#include <doctest/doctest.h>
#include <kj/async-io.h>
#include <kj/debug.h>
#include <kj/mutex.h>

#include "configs/language/failure.h"

namespace runner {

TEST_CASE("besideLoop: the loop keeps running while the work waits") {
  auto io = kj::setupAsyncIo();
  kj::MutexGuarded<bool> mayEnd(false);
  bool isDone = false;
  auto work = besideLoop(nullptr, [&]() {
    mayEnd.when([](bool may) { return may; }, [](bool) {});
    isDone = true;
  });
  kj::uint turns = 0;
  for (; turns < 100; ++turns) kj::evalLater([]() {}).wait(io.waitScope);
  CHECK(!work.poll(io.waitScope));
  *mayEnd.lockExclusive() = true;
  work.wait(io.waitScope);
  CHECK(isDone);
}

TEST_CASE("besideLoop: rejects with the exception of the work") {
  auto io = kj::setupAsyncIo();
  auto work = besideLoop(nullptr, []() { configs::fail("the disk is full"); });
  auto problem = kj::runCatchingExceptions([&]() { work.wait(io.waitScope); });
  CHECK(KJ_ASSERT_NONNULL(problem).getDescription() == "the disk is full");
}

TEST_CASE("besideLoop: dropping the promise waits for the work") {
  auto io = kj::setupAsyncIo();
  bool isDone = false;
  {
    auto work = besideLoop(nullptr, [&]() { isDone = true; });
  }
  CHECK(isDone);
}

}  // namespace runner
