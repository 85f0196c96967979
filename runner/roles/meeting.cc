#include "runner/roles/meeting.h"

#include <kj/debug.h>

namespace runner {

kj::Promise<void> Meeting::join(
    uint rank, uint newEpoch, uint64_t newStep, MeetingPoint newPlace, Contribution contribution) {
  auto& mine = contributions[rank];
  if (waiting.size() == 0) {
    epoch = newEpoch;
    step = newStep;
    place = newPlace;
    statistics = contribution.statistics.size();
  }
  KJ_REQUIRE(
      epoch == newEpoch && step == newStep && place == newPlace && mine == nullptr && !isFull(),
      "workers lost step with each other", rank, newEpoch, epoch, newStep, step);
  KJ_REQUIRE(contribution.statistics.size() == statistics,
      "workers bring different numbers of statistics", rank, contribution.statistics.size(),
      statistics);
  mine = kj::mv(contribution);
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiting.add(kj::mv(paf.fulfiller));
  if (isFull()) {
    result = add();
    for (auto& each: contributions) each = nullptr;
  }
  return kj::mv(paf.promise);
}

Contribution Meeting::add() const {
  Contribution all;
  auto size = KJ_ASSERT_NONNULL(contributions[0]).statistics.size();
  auto sums = kj::heapArray<double>(size);
  for (auto& sum: sums) sum = 0;
  for (auto& each: contributions) {
    auto& part = KJ_ASSERT_NONNULL(each);
    all.sums.lossSum += part.sums.lossSum;
    all.sums.correct += part.sums.correct;
    all.sums.images += part.sums.images;
    for (size_t i = 0; i < size; i++) sums[i] += part.statistics[i] * double(part.sums.images);
  }
  auto images = all.sums.images;
  all.statistics = KJ_MAP(sum, sums) {
    return float(images == 0 ? 0 : sum / images);
  };
  return all;
}

void Meeting::end() {
  for (auto& fulfiller: waiting) fulfiller->fulfill();
  waiting.clear();
}

}  // namespace runner
