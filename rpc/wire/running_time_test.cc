#include "rpc/wire/running_time.h"

#include <doctest/doctest.h>

namespace rpc {
namespace {

// A clock that the test advances.
struct TestClock {
  kj::EventLoop loop;
  kj::WaitScope waitScope{loop};
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};
  RunningTime time{timer};

  // The process runs for this time.
  void run(kj::Duration duration) {
    for (auto end = timer.now() + duration; timer.now() < end;) {
      stop(100 * kj::MILLISECONDS);
      waitScope.poll();
    }
  }
  // The process is stopped for this time.
  void stop(kj::Duration duration) { timer.advanceTo(timer.now() + duration); }
};

TEST_CASE("RunningTime: all time of a running process counts") {
  TestClock clock;
  auto end = clock.time.until(60 * kj::SECONDS).eagerlyEvaluate(nullptr);
  clock.run(59 * kj::SECONDS);
  CHECK(clock.time.passed() == 59 * kj::SECONDS);
  CHECK_FALSE(end.poll(clock.waitScope));
  clock.run(1 * kj::SECONDS);
  CHECK(end.poll(clock.waitScope));
}

TEST_CASE("RunningTime: of the time in which a process was stopped, only GAP_MAX counts") {
  TestClock clock;
  auto end = clock.time.until(5 * kj::SECONDS).eagerlyEvaluate(nullptr);
  clock.run(1 * kj::SECONDS);
  clock.stop(1 * kj::HOURS);
  CHECK(clock.time.passed() == 1 * kj::SECONDS + RunningTime::GAP_MAX);
  CHECK_FALSE(end.poll(clock.waitScope));
  clock.run(4 * kj::SECONDS);
  CHECK(end.poll(clock.waitScope));
}

}  // namespace
}  // namespace rpc
