#include "tests/simulation/faults.h"

#include <errno.h>
#include <kj/debug.h>

namespace simulation {

using runner::Role;

Faults::Faults(World& world, const Plan& plan, const Extent& extent)
    : world(world),
      gone(kj::newPromiseAndFulfiller<void>()),
      interrupt(kj::newPromiseAndFulfiller<kj::Duration>()),
      tasks(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))) {
  auto begin = world.clock.now();
  for (auto& fault: plan.faults) {
    bool isAtChange =
        fault.kind == Fault::KILL_AT_CHANGE || fault.kind == Fault::LOSE_POWER_AT_CHANGE;
    if (isAtChange) {
      atChange.add(AtNumber{fault, uint64_t(fault.at * extent.changes)});
      continue;
    }
    if (fault.kind == Fault::KILL_AT_SEND) {
      atSend.add(AtNumber{fault, uint64_t(fault.at * extent.sends)});
      continue;
    }
    auto moment = begin + int64_t(fault.at * extent.seconds * 1e9) * kj::NANOSECONDS;
    tasks->add(world.clock.timer().atTime(moment).then([this, &fault]() { apply(fault); }));
  }
  world.disk.onChange = [this](uint64_t number) {
    for (auto& each: atChange) {
      if (each.number == number && !isOver) loseAll(each.fault.kind == Fault::LOSE_POWER_AT_CHANGE);
    }
  };
  world.network.onSend = [this](uint64_t number, Endpoint& from) {
    for (auto& each: atSend) {
      if (each.number == number && !isOver) {
        KJ_IF_MAYBE(process, this->world.processAt(from)) process->killSoon();
      }
    }
  };
}

Faults::~Faults() noexcept(false) {
  world.disk.onChange = [](uint64_t) {};
  world.network.onSend = [](uint64_t, Endpoint&) {};
}

void Faults::apply(const Fault& fault) {
  if (isOver) return;
  switch (fault.kind) {
    case Fault::KILL_WORKER:
    case Fault::KILL_SERVER:
    case Fault::KILL_COORDINATOR: {
      constexpr Role ROLES[] = {Role::WORKER, Role::SERVER, Role::COORDINATOR};
      KJ_IF_MAYBE(process, chosen(ROLES[fault.kind], fault.role)) process->kill();
      return;
    }
    case Fault::KILL_LAUNCHER:
    case Fault::LOSE_POWER:
      return loseAll(fault.kind == Fault::LOSE_POWER);
    case Fault::FREEZE:
      KJ_IF_MAYBE(process, chosen(nullptr, fault.role)) {
        process->endpoint.freezeUntil(world.clock.now() + fault.time);
      }
      return;
    case Fault::CUT:
      KJ_IF_MAYBE(process, chosen(nullptr, fault.role)) {
        process->endpoint.cutUntil(world.clock.now() + fault.time);
      }
      return;
    case Fault::CUT_FROM_COORDINATOR:
      KJ_IF_MAYBE(coordinator, chosen(Role::COORDINATOR, 0)) {
        KJ_IF_MAYBE(process, chosen(nullptr, fault.role)) {
          process->endpoint.cutUntil(world.clock.now() + fault.time, coordinator->endpoint);
        }
      }
      return;
    case Fault::BREAK_CONNECTION:
      world.network.breakOne();
      return;
    case Fault::FILL_DISK:
      return world.disk.fail(ENOSPC, 1 + fault.time / kj::SECONDS, "/checkpoints/");
    case Fault::BREAK_DISK:
      return world.disk.failSyncs(1 + fault.time / kj::SECONDS, "/events.jsonl");
    case Fault::STALL_DISK:
      world.stalledUntil = world.clock.now() + fault.time;
      return;
    case Fault::MOVE_DATE:
      return world.clock.moveDate(fault.time);
    case Fault::INTERRUPT:
      return interrupt.fulfiller->fulfill(kj::cp(fault.time));
    case Fault::LEAVE:
      KJ_IF_MAYBE(process, chosen(Role::WORKER, fault.role)) process->askToLeave();
      return;
    case Fault::KILL_AT_SEND:
    case Fault::KILL_AT_CHANGE:
    case Fault::LOSE_POWER_AT_CHANGE:
    case Fault::KINDS:
      KJ_UNREACHABLE;
  }
}

kj::Maybe<RoleProcess&> Faults::chosen(kj::Maybe<Role> role, uint index) {
  kj::Vector<RoleProcess*> all;
  for (auto process: world.running) {
    if (process->role == role.orDefault(process->role)) all.add(process);
  }
  if (all.empty()) return nullptr;
  return *all[index % all.size()];
}

void Faults::loseAll(bool power) {
  isOver = true;
  lostPower = power;
  for (auto process: world.running) {
    if (!process->isOutOfReach()) process->endpoint.die();
  }
  world.disk.stop();
  gone.fulfiller->fulfill();
}

void Faults::taskFailed(kj::Exception&& e) {
  KJ_LOG(ERROR, e);
}

}  // namespace simulation
