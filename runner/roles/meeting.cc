#include "runner/roles/meeting.h"

#include <kj/debug.h>

namespace runner {

kj::Promise<void> Meeting::join(
    uint rank, uint newEpoch, uint64_t newStep, MeetingPoint newPlace, Contribution contribution) {
  auto& mine = places[rank];
  if (present == 0 && mine.isMember) {
    auto count = contribution.statistics.size();
    bool isSame = epoch == newEpoch && step == newStep && place == newPlace && statistics == count;
    // Parts of a validation whose workers have left: see leave().
    if (!isSame) dropContributions();
    epoch = newEpoch;
    step = newStep;
    place = newPlace;
    statistics = count;
  }
  KJ_REQUIRE(mine.isMember && !full && epoch == newEpoch && step == newStep && place == newPlace &&
                 mine.contribution == nullptr,
      "workers meet at different steps, or one of them meets twice", rank, newEpoch, epoch, newStep,
      step);
  KJ_REQUIRE(contribution.statistics.size() == statistics,
      "workers bring different numbers of statistics", rank, contribution.statistics.size(),
      statistics);
  mine.contribution = kj::mv(contribution);
  auto paf = kj::newPromiseAndFulfiller<void>();
  mine.waiting = kj::mv(paf.fulfiller);
  present++;
  closeIfFull();
  return kj::mv(paf.promise);
}

bool Meeting::closeIfFull() {
  if (full || present == 0 || present < members) return false;
  full = true;
  add();
  dropContributions();
  return true;
}

void Meeting::dropContributions() {
  for (auto& each: places) each.contribution = nullptr;
}

void Meeting::add() {
  result = {};
  kj::Array<double> sums;
  double weights = 0;
  nn::Confusion confusion;
  uint64_t images = 0;
  for (auto& each: places) {
    KJ_IF_MAYBE(part, each.contribution) images += part->sums.images;
  }
  for (auto& each: places) {
    KJ_IF_MAYBE(part, each.contribution) {
      result.sums.add(part->sums);
      for (auto& cell: part->confusion) confusion.add(cell);
      auto& statistics = part->statistics;
      if (sums == nullptr) {
        sums = kj::heapArray<double>(statistics.size());
        for (auto& sum: sums) sum = 0;
      }
      // Workers that have just joined may have seen no image yet.
      double weight = images == 0 ? 1 : double(part->sums.images);
      weights += weight;
      for (auto i: kj::indices(sums)) sums[i] += statistics[i] * weight;
    } else if (place == MeetingPoint::VALIDATED && each.validates) {
      result.again = true;
    }
  }
  cells = confusion.cells();
  result.statistics = KJ_MAP(sum, sums) {
    return float(sum / weights);
  };
}

MeetingOutcome Meeting::outcomeOf(uint rank) const {
  return {result.sums, kj::heapArray<float>(result.statistics.asPtr()), result.stopsNext,
      partsBelow(rank), partsBelow(places.size()), result.again};
}

uint Meeting::partsBelow(uint rank) const {
  uint parts = 0;
  for (uint i = 0; i < rank; i++) parts += places[i].validates ? 1 : 0;
  return parts;
}

void Meeting::end() {
  full = false;
  present = 0;
  for (auto& each: places) {
    if (place != MeetingPoint::SAVED) each.validates = each.isMember;
    KJ_IF_MAYBE(waiting, each.waiting) (*waiting)->fulfill();
    each.waiting = nullptr;
  }
}

bool Meeting::leave(uint rank) {
  auto& mine = places[rank];
  if (!mine.isMember) return false;
  mine.isMember = false;
  members--;
  if (full) return false;
  KJ_IF_MAYBE(waiting, mine.waiting) {
    present--;
    (*waiting)->reject(KJ_EXCEPTION(DISCONNECTED, "the job continues without this worker", rank));
  }
  mine.waiting = nullptr;
  if (place != MeetingPoint::VALIDATED) mine.contribution = nullptr;
  return closeIfFull();
}

void Meeting::enter(uint rank) {
  auto& mine = places[rank];
  KJ_REQUIRE(!mine.isMember, "a worker is a member already", rank);
  mine.isMember = true;
  mine.contribution = nullptr;
  members++;
}

}  // namespace runner
