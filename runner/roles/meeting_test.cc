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

TEST_CASE("Meeting: gives the sum of the sums, and the mean of the statistics by images") {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  Meeting meeting(2);
  auto second = meeting.join(1, 1, 10, MeetingPoint::TRAINED, contribution(1.5, 30, 5));
  CHECK_FALSE(meeting.isFull());
  auto first = meeting.join(0, 1, 10, MeetingPoint::TRAINED, contribution(0.25, 10, 1));
  REQUIRE(meeting.isFull());
  CHECK_FALSE(first.poll(scope));
  CHECK(meeting.outcome().sums.lossSum == 1.75);
  CHECK(meeting.outcome().sums.correct == 20);
  CHECK(meeting.outcome().sums.images == 40);
  CHECK(meeting.outcome().sums.inTopK == 22);
  CHECK(meeting.outcome().statistics[0] == 4);
  meeting.end();
  CHECK(first.poll(scope));
  CHECK(second.poll(scope));
}

TEST_CASE("Meeting: refuses workers at another point of the run, and one that is there already") {
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

TEST_CASE("Meeting: refuses other numbers of statistics, and a worker that meets again too early") {
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
