#include "tests/simulation/account.h"

#include <algorithm>
#include <unordered_map>

#include "configs/language/random.h"
#include "runner/logs/events.h"
#include "runner/logs/role_names.h"
#include "runner/roles/job_members.h"
#include "runner/system/files.h"

namespace simulation {

namespace {

constexpr uint64_t EVENTS_MAX_BYTES = 1 << 20;

}  // namespace

Account accountOf(const runner::RunFolder& folder, uint workers, uint epochs) {
  Account account;
  account.events = runner::readWhole(folder.events(), EVENTS_MAX_BYTES);
  for (uint rank = 0; rank < workers; rank++) {
    account.memberships.add(Account::Membership{rank, 0, kj::maxValue});
  }
  kj::Vector<kj::String> lines, members;
  std::map<uint, uint64_t> steps;                        // by epoch
  std::map<uint, std::pair<uint64_t, uint64_t>> pushes;  // pushed and applied, by server
  runner::eachEvent(folder, [&](runner::Event::Reader event) {
    auto role = [&]() { return runner::roleName(event.getRole(), event.getIndex()); };
    if (event.isTrained()) {
      auto trained = event.getTrained();
      lines.add(kj::str(role(), ": epoch ", trained.getEpoch(), ", steps ", trained.getSteps(),
          ", images ", trained.getImages()));
      auto& known = steps[trained.getEpoch()];
      known = kj::max(known, trained.getSteps());
    } else if (event.isValidated()) {
      auto validated = event.getValidated();
      lines.add(
          kj::str("validated: epoch ", validated.getEpoch(), ", images ", validated.getImages()));
      account.validated.add(validated.getImages());
    } else if (event.isCounted()) {
      auto counted = event.getCounted().getPushes();
      double applied = 0;
      auto staleness = counted.getStaleness();
      for (auto i: kj::indices(staleness)) {
        applied += staleness[i];
        if (staleness[i] > 0) account.stalest = kj::max(account.stalest, i);
      }
      pushes[event.getIndex()] = {uint64_t(counted.getPushed()), uint64_t(applied)};
      lines.add(kj::str(role(), ": pushed ", counted.getPushed(), ", dropped ",
          counted.getDropped(), ", applied ", applied));
    } else if (event.isMembership()) {
      auto change = event.getMembership();
      account.hasChanges = true;
      // Nobody repeats a loss after the last epoch.
      if (change.getEpoch() <= epochs) {
        members.add(kj::str("epoch ", change.getEpoch(), ", step ", change.getStep(), ": ", role(),
            change.getJoined() ? " joins"
            : change.getLeft() ? " leaves"
                               : " is lost",
            ", held [", change.getHeld(), "]"));
      }
      if (change.getJoined()) {
        account.memberships.add(
            Account::Membership{event.getIndex(), change.getStep(), kj::maxValue});
        return;
      }
      auto held = KJ_ASSERT_NONNULL(runner::parseRanges(change.getHeld()), change.getHeld());
      account.heldOfLost += held.size();
      for (auto& each: account.memberships) {
        bool isIt = each.rank == event.getIndex() && each.end == kj::maxValue;
        if (!isIt) continue;
        each.lostWithin = held.size() > 0;
        each.end = change.getStep() + (each.lostWithin ? 1 : 0);
      }
    }
  });
  for (auto& [epoch, count]: steps) account.steps += count;
  for (auto& [server, counts]: pushes) {
    account.pushed += counts.first;
    account.applied += counts.second;
  }
  auto isLess = [](kj::StringPtr a, kj::StringPtr b) { return a < b; };
  std::sort(lines.begin(), lines.end(), isLess);
  // Workers that are lost in the same step may be lost in another order.
  std::sort(members.begin(), members.end(), isLess);
  account.counts = kj::str(kj::strArray(lines, "\n"), "\n");
  account.members = kj::strArray(members, "\n");
  return account;
}

void ReadRecords::add(uint rank, uint64_t step, kj::ArrayPtr<const uint64_t> draws) {
  steps[{rank, step}].assign(draws.begin(), draws.end());
}

kj::Maybe<kj::String> ReadRecords::wrongIn(
    const Account& account, const runner::Experiment& experiment, uint64_t records) const {
  struct Place {
    uint64_t pass;
    uint64_t record;
    uint count = 0;
  };
  std::unordered_map<uint64_t, Place> places;
  uint passes = KJ_ASSERT_NONNULL(experiment.train.epochs);
  for (uint64_t pass = 0; pass < passes; pass++) {
    for (uint64_t record = 0; record < records; record++) {
      configs::Random random(experiment.train.seed, configs::Purpose::DROPOUT, pass, record);
      places[random.next()] = {pass, record};
    }
  }
  uint batch = experiment.data.batchSize;
  uint lastWorkers = 0;
  for (auto& member: account.memberships) {
    uint64_t end = kj::min(member.end, account.steps);
    if (end == account.steps) lastWorkers++;
    for (uint64_t step = member.begin; step < end; step++) {
      auto found = steps.find({member.rank, step});
      if (found == steps.end()) {
        return kj::str("worker ", member.rank, " has read no records for step ", step);
      }
      for (auto draw: found->second) {
        auto place = places.find(draw);
        if (place == places.end()) {
          return kj::str("worker ", member.rank, " has read something unknown for step ", step);
        }
        place->second.count++;
      }
    }
  }
  uint64_t missing = 0;
  for (auto& [draw, place]: places) {
    if (place.count == 1) continue;
    bool isRest = place.count == 0 && place.pass + 1 == passes;
    if (!isRest) {
      return kj::str(
          "record ", place.record, " counts ", place.count, " times in pass ", place.pass);
    }
    missing++;
  }
  // The remaining records do not fill a step.
  if (missing < uint64_t(lastWorkers) * batch) return nullptr;
  return kj::str(missing, " records do not count in the last pass");
}

}  // namespace simulation
