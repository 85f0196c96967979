#include "runner/roles/meeting.h"

#include <doctest/doctest.h>
#include <kj/async-io.h>
#include <kj/debug.h>

namespace runner {
namespace {

Contribution contribution(double loss, uint images, float statistic) {
  return {{.lossSum = loss, .correct = images / 2, .images = images, .inTopK = images / 2 + 1},
      kj::arr(statistic)};
}

TEST_CASE("Meeting: adds up the workers' sums, and averages their statistics weighted by images") {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  Meeting meeting(2);
  auto second = meeting.join(1, 1, 10, MeetingPoint::TRAINED, contribution(1.5, 30, 5));
  CHECK_FALSE(meeting.isFull());
  auto first = meeting.join(0, 1, 10, MeetingPoint::TRAINED, contribution(0.25, 10, 1));
  REQUIRE(meeting.isFull());
  CHECK_FALSE(first.poll(scope));
  CHECK(meeting.outcomeOf(0).sums.lossSum == 1.75);
  CHECK(meeting.outcomeOf(0).sums.correct == 20);
  CHECK(meeting.outcomeOf(0).sums.images == 40);
  CHECK(meeting.outcomeOf(0).sums.inTopK == 22);
  CHECK(meeting.outcomeOf(0).statistics[0] == 4);
  meeting.end();
  CHECK(first.poll(scope));
  CHECK(second.poll(scope));
}

Contribution validated(kj::ArrayPtr<const nn::ConfusionCell> cells) {
  Contribution own;
  for (auto& cell: cells) own.sums.images += cell.images;
  own.confusion = kj::heapArray(cells);
  return own;
}

// Returns the cells of the outcome as `label>predicted:images `.
kj::String confusionOf(const Meeting& meeting) {
  auto cells = KJ_MAP(cell, meeting.confusion()) {
    return kj::str(cell.label, '>', cell.predicted, ':', cell.images, ' ');
  };
  return kj::strArray(cells, "");
}

TEST_CASE("Meeting: adds up the confusion of all workers") {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  Meeting meeting(2);
  auto second =
      meeting.join(1, 1, 10, MeetingPoint::VALIDATED, validated({{0, 0, 3}, {1, 0, 2}, {2, 2, 1}}));
  auto first = meeting.join(0, 1, 10, MeetingPoint::VALIDATED, validated({{0, 1, 1}, {1, 0, 4}}));
  REQUIRE(meeting.isFull());
  CHECK(confusionOf(meeting) == "0>0:3 0>1:1 1>0:6 2>2:1 ");
  meeting.end();
  auto next = meeting.join(0, 2, 20, MeetingPoint::TRAINED, contribution(1, 1, 0));
  auto last = meeting.join(1, 2, 20, MeetingPoint::TRAINED, contribution(1, 1, 0));
  CHECK(confusionOf(meeting) == "");
}

TEST_CASE("Meeting: parts that are validated again because a worker was lost count once") {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  Meeting meeting(3);
  auto join = [&](uint rank, kj::ArrayPtr<const nn::ConfusionCell> cells) {
    return meeting.join(rank, 1, 10, MeetingPoint::VALIDATED, validated(cells))
        .eagerlyEvaluate([](kj::Exception&&) {});
  };
  // Worker 2 has validated its part, and worker 1 has not.
  auto a = join(0, {{0, 0, 3}});
  auto b = join(2, {{1, 1, 4}});
  CHECK_FALSE(meeting.leave(2));
  CHECK(meeting.leave(1));
  CHECK(meeting.repeats());
  meeting.end();
  auto c = join(0, {{0, 0, 5}, {1, 1, 4}});
  REQUIRE(meeting.isFull());
  CHECK_FALSE(meeting.repeats());
  CHECK(confusionOf(meeting) == "0>0:5 1>1:4 ");
}

TEST_CASE("Meeting: the part of a worker that has left counts for its own validation only") {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  for (bool isSame: {true, false}) {
    CAPTURE(isSame);
    Meeting meeting(3);
    auto lost = meeting.join(0, 1, 10, MeetingPoint::VALIDATED, contribution(1, 8, 5))
                    .eagerlyEvaluate([](kj::Exception&&) {});
    CHECK_FALSE(meeting.leave(0));
    // A worker that has left does not change what the others meet for.
    CHECK_THROWS(meeting.join(0, 2, 20, MeetingPoint::TRAINED, contribution(1, 1, 0)));
    auto next = [&](uint rank) {
      if (isSame) {
        return meeting.join(rank, 1, 10, MeetingPoint::VALIDATED, contribution(1, 4, 5));
      }
      Contribution more{{.images = 4}, kj::heapArray<float>(1000)};
      for (auto& value: more.statistics) value = 1;
      return meeting.join(rank, 1, 10, MeetingPoint::SAVED, kj::mv(more));
    };
    auto a = next(1), b = next(2);
    REQUIRE(meeting.isFull());
    auto outcome = meeting.outcomeOf(1);
    CHECK(outcome.sums.images == (isSame ? 16 : 8));
    CHECK(outcome.statistics.size() == (isSame ? 1 : 1000));
  }
}

TEST_CASE("Meeting: refuses workers at another point of the run, and one that has already joined") {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  Meeting meeting(3);
  auto joined = meeting.join(0, 2, 10, MeetingPoint::TRAINED, contribution(1, 1, 0));
  auto refuses = [&](uint rank, uint epoch, MeetingPoint point, uint64_t step = 10) {
    auto join = [&]() { meeting.join(rank, epoch, step, point, contribution(1, 1, 0)); };
    return kj::runCatchingExceptions(join) != nullptr;
  };
  CHECK(refuses(1, 1, MeetingPoint::TRAINED));
  CHECK(refuses(1, 2, MeetingPoint::VALIDATED));
  CHECK(refuses(1, 2, MeetingPoint::TRAINED, 11));
  CHECK(refuses(0, 2, MeetingPoint::TRAINED));
  CHECK_FALSE(refuses(1, 2, MeetingPoint::TRAINED));
}

TEST_CASE("Meeting: refuses a wrong number of statistics, and a worker that meets too early") {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  Meeting meeting(2);
  auto join = [&](uint rank, size_t statistics) {
    Contribution own;
    own.statistics = kj::heapArray<float>(statistics);
    for (auto& each: own.statistics) each = 1;
    return meeting.join(rank, 1, 10, MeetingPoint::SAVED, kj::mv(own));
  };
  auto refuses = [&](uint rank, size_t statistics) {
    return kj::runCatchingExceptions([&]() { join(rank, statistics); }) != nullptr;
  };
  auto first = join(0, 3);
  CHECK(refuses(1, 0));
  CHECK(refuses(1, 4));
  auto second = join(1, 3);
  REQUIRE(meeting.isFull());
  CHECK(refuses(0, 3));
  meeting.end();
  CHECK(first.poll(scope));
}

}  // namespace
}  // namespace runner
