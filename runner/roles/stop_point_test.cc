#include "runner/roles/stop_point.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

TEST_CASE("StopPoint: a worker agrees to stop at a step that it has not begun, and stops there") {
  StopPoint stops;
  stops.beginEpoch(10, 20);
  CHECK(stops.ask(12).answer == StopAnswer::YES);
  CHECK_FALSE(stops.isAsked(10));
  CHECK_FALSE(stops.isAsked(11));
  CHECK(stops.isAsked(12));
  // The worker is waiting, and has not begun that step.
  CHECK(stops.ask(13).begun == 12);
  stops.cancel();
  stops.goOn(12);
  CHECK(stops.ask(12).answer == StopAnswer::PASSED);
  CHECK(stops.ask(12).begun == 13);
  CHECK_FALSE(stops.isAsked(13));
}

TEST_CASE(
    "StopPoint: a worker refuses a step that it has begun, or that its epoch does not reach") {
  StopPoint stops;
  // Before the first epoch, no step is known.
  CHECK(stops.ask(0).answer == StopAnswer::EPOCH_ENDS);
  stops.beginEpoch(0, 3);
  CHECK(stops.ask(0).answer == StopAnswer::YES);
  stops.cancel();
  CHECK_FALSE(stops.isAsked(0));
  CHECK(stops.ask(0).answer == StopAnswer::PASSED);
  CHECK(stops.ask(2).answer == StopAnswer::YES);
  CHECK(stops.ask(3).answer == StopAnswer::EPOCH_ENDS);
}

TEST_CASE("StopPoint: forgets a stop if the epoch has ended before it") {
  StopPoint stops;
  stops.beginEpoch(0, 3);
  CHECK(stops.ask(2).answer == StopAnswer::YES);
  stops.beginEpoch(3, 6);
  CHECK_FALSE(stops.isAsked(3));
}

TEST_CASE("StopPoint: a worker that continues keeps a stop to which it agreed meanwhile") {
  StopPoint stops;
  stops.beginEpoch(0, 100);
  CHECK(stops.ask(5).answer == StopAnswer::YES);
  CHECK(stops.isAsked(5));
  // The others did not agree, and the next request arrives before the worker has continued.
  stops.cancel();
  CHECK(stops.ask(7).answer == StopAnswer::YES);
  stops.goOn(5);
  CHECK_FALSE(stops.isAsked(6));
  CHECK(stops.isAsked(7));
}

}  // namespace
}  // namespace runner
