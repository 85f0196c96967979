#include "tests/simulation/plan.h"

namespace simulation {

const char* const FAULT_NAMES[] = {"kill a worker", "kill a server", "kill the coordinator",
    "kill the launcher", "kill a role that is about to send something",
    "kill all at a change of the disk", "lose power", "lose power at a change of the disk",
    "freeze a role", "cut a role off", "cut a role off from the coordinator", "break a connection",
    "fill the disk", "break the disk", "stall the disk", "move the date", "interrupt the run",
    "ask a worker to leave"};
static_assert(kj::size(FAULT_NAMES) == Fault::KINDS);

Plan Plan::draw(uint64_t seed, kj::ArrayPtr<const bool> continues) {
  Dice dice(seed * 2 + 1);
  Plan plan;
  plan.seed = seed;
  plan.variant = dice.below(continues.size());
  plan.slowest = dice.chance(0.5) ? 4 * kj::MILLISECONDS : 40 * kj::MILLISECONDS;
  uint count = dice.chance(0.6) ? 1 : dice.chance(0.6) ? 2 : 3;
  // A run that is lost five times without progress ends.
  if (continues[plan.variant]) count = kj::min(4u, count + uint(dice.below(3)));
  for (uint i = 0; i < count; i++) {
    Fault fault{};
    fault.kind = Fault::Kind(dice.below(Fault::LEAVE));
    // Killing the whole job does not test how a job continues without workers.
    constexpr Fault::Kind OF_WORKER[] = {Fault::KILL_WORKER, Fault::FREEZE, Fault::LEAVE};
    bool isOfWorker = continues[plan.variant] && dice.chance(0.5);
    if (isOfWorker) fault.kind = OF_WORKER[dice.below(kj::size(OF_WORKER))];
    fault.at = dice.fraction();
    fault.role = dice.below(8);
    fault.time = dice.time(30 * kj::SECONDS);
    if (fault.kind == Fault::MOVE_DATE) {
      fault.time = (int64_t(dice.below(7200)) - 3600) * kj::SECONDS;
    }
    plan.faults.add(fault);
  }
  return plan;
}

bool Plan::hasOnly(Fault::Kind kind) const {
  for (auto& fault: faults) {
    if (fault.kind != kind) return false;
  }
  return true;
}

Plan Plan::clone() const {
  Plan copy;
  copy.seed = seed;
  copy.variant = variant;
  copy.slowest = slowest;
  for (auto& fault: faults) copy.faults.add(fault);
  return copy;
}

kj::String KJ_STRINGIFY(const Plan& plan) {
  kj::Vector<kj::String> faults;
  for (auto& fault: plan.faults) {
    faults.add(kj::str("  at ", fault.at, ": ", FAULT_NAMES[fault.kind], ", role ", fault.role,
        ", for ", fault.time / kj::MILLISECONDS, " ms"));
  }
  return kj::str("seed ", plan.seed, ", experiment ", plan.variant, ", data take up to ",
      plan.slowest / kj::MICROSECONDS, " us\n", kj::strArray(faults, "\n"));
}

}  // namespace simulation
