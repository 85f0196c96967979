#include "rpc/trace.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

namespace rpc {
namespace {

TEST_CASE("TraceLane: a full lane keeps its oldest events, and counts the others") {
  TraceLane lane({}, 3);
  for (uint step = 0; step < 5; step++) lane.add(TracePoint::SENT, 1, step, 7);
  REQUIRE(lane.all().size() == 3);
  for (uint step = 0; step < 3; step++) CHECK(lane.all()[step].step == step);
  CHECK(lane.all()[0].begin_ns <= lane.all()[2].begin_ns);
  CHECK(lane.all()[2].worker == 1);
  CHECK(lane.all()[2].item == 7);
  CHECK(lane.dropped() == 2);
}

TEST_CASE("TraceLane: steps outside the recorded range take no room") {
  TraceLane lane({2, 3}, 4);
  for (uint step = 0; step < 6; step++) lane.add(TracePoint::SENT, 0, step, 0);
  REQUIRE(lane.all().size() == 2);
  CHECK(lane.all()[0].step == 2);
  CHECK(lane.all()[1].step == 3);
  CHECK(lane.dropped() == 0);
}

TEST_CASE("TraceLane: a push after several steps belongs to the last of them") {
  uint64_t steps[] = {2, 5, 6, 9};
  TraceLane lane({5, 6}, 10, steps);
  for (uint number = 0; number < 4; number++) lane.add(TracePoint::SENT, 0, number, 0);
  for (uint step = 4; step < 8; step++) {
    lane.add(TracePoint::READ, 0, step, 0, lane.now(), lane.now());
  }
  REQUIRE(lane.all().size() == 4);
  uint64_t expected[] = {5, 6, 5, 6};
  for (uint i = 0; i < 4; i++) CHECK(lane.all()[i].step == expected[i]);
}

TEST_CASE("ShardTrace: a repeated push is recorded once, whichever station it had reached") {
  TraceLane lane({}, 100);
  ShardTrace trace(lane, 1, 1);
  auto push = [&]() {
    trace.arrived(0, 0, 0);
    trace.counted(0, 0, 1);
  };
  push();
  push();
  trace.reached(0, 1);
  push();
  trace.answered(0, 0);
  push();
  trace.reached(0, 1);
  trace.answered(0, 0);
  TracePoint expected[] = {
      TracePoint::ARRIVED, TracePoint::COUNTED, TracePoint::APPLIED, TracePoint::ANSWERED};
  REQUIRE(lane.all().size() == kj::size(expected));
  for (uint i = 0; i < kj::size(expected); i++) CHECK(lane.all()[i].point == expected[i]);
  trace.arrived(0, 1, 0);
  CHECK(lane.all().back().step == 1);
}

TEST_CASE("ShardTrace: a push counts as applied when its progress is reached, and not before") {
  TraceLane lane({}, 100);
  ShardTrace trace(lane, 2, 3);
  // A round of both workers, which the second push fills.
  trace.arrived(0, 4, 2);
  trace.counted(0, 2, 5);
  trace.reached(2, 4);
  trace.arrived(1, 4, 2);
  trace.counted(1, 2, 5);
  trace.reached(1, 9);
  trace.reached(2, 5);
  trace.reached(2, 5);
  trace.answered(0, 2);
  trace.answered(1, 2);
  trace.answered(1, 2);  // the answer to a pull

  kj::Vector<TracePoint> points[2];
  int64_t last_ns = 0;
  for (auto& event: lane.all()) {
    points[event.worker].add(event.point);
    CHECK(event.step == 4);
    CHECK(event.item == 2);
    CHECK(event.end_ns >= last_ns);
    CHECK(event.begin_ns <= event.end_ns);
    last_ns = event.end_ns;
  }
  TracePoint expected[] = {
      TracePoint::ARRIVED, TracePoint::COUNTED, TracePoint::APPLIED, TracePoint::ANSWERED};
  for (auto& found: points) {
    REQUIRE(found.size() == kj::size(expected));
    for (uint i = 0; i < found.size(); i++) CHECK(found[i] == expected[i]);
  }
  // The first push waits for the second one.
  CHECK(lane.all()[4].point == TracePoint::APPLIED);
}

}  // namespace
}  // namespace rpc
