#include "runner/roles/member_plan.h"

#include "configs/language/failure.h"
#include "runner/logs/events.h"
#include "runner/logs/role_names.h"
#include "runner/roles/job_members.h"
#include "runner/text/numbers.h"

namespace runner {

void requireSeat(const RunFolder& folder, uint rank, uint seats) {
  if (rank < seats) return;
  configs::fail("the run in ", folder.path, " had ", roleName(Role::WORKER, rank),
      ", and a job of this file has at most ", counted(seats, "worker"),
      ": raise cluster.elastic.max");
}

MemberPlan::MemberPlan(const RunFolder& folder, uint seats) {
  eachEvent(folder, [&](Event::Reader event) {
    if (!event.isMembership()) return;
    requireSeat(folder, event.getIndex(), seats);
    auto change = event.getMembership();
    if (change.getJoined()) {
      joins.add(Join{event.getIndex(), change.getEpoch(), change.getStep()});
      return;
    }
    KJ_IF_MAYBE(slices, parseRanges(change.getHeld())) {
      losses.add(Loss{event.getIndex(), change.getEpoch(), change.getStep(), kj::mv(*slices),
          change.getLeft()});
    } else {
      configs::fail(
          folder.events(), " has an event `membership` whose `held` is wrong: ", change.getHeld());
    }
  });
}

size_t MemberPlan::changes(uint epochs) const {
  size_t count = 0;
  for (auto& loss: losses) count += loss.epoch <= epochs;
  for (auto& join: joins) count += join.epoch <= epochs;
  return count;
}

uint MemberPlan::seats(uint workers) const {
  for (auto& join: joins) workers = kj::max(workers, join.rank + 1);
  return workers;
}

kj::Maybe<const MemberPlan::Loss&> MemberPlan::lossOf(uint rank, uint64_t step) const {
  kj::Maybe<const Loss&> first;
  for (auto& loss: losses) {
    if (loss.rank != rank || loss.step < step) continue;
    KJ_IF_MAYBE(known, first) {
      if (known->step <= loss.step) continue;
    }
    first = loss;
  }
  return first;
}

kj::Array<uint> MemberPlan::joiningAt(uint64_t step) const {
  kj::Vector<uint> ranks;
  for (auto& join: joins) {
    if (join.step == step) ranks.add(join.rank);
  }
  return ranks.releaseAsArray();
}

}  // namespace runner
