// tests/simulation/faults.h: makes roles, connections and the machine of a simulated job fail.
#pragma once

#include <kj/async.h>
#include <kj/vector.h>

#include "tests/simulation/plan.h"
#include "tests/simulation/world.h"

namespace simulation {

// The amount of work of an undisturbed job.
struct Extent {
  double seconds = 0;
  uint64_t changes = 0;  // of the disk
  uint64_t sends = 0;    // over the network
};

// Causes the faults of a plan. `extent` determines their times.
class Faults final: private kj::TaskSet::ErrorHandler {
public:
  // All arguments must outlive it.
  Faults(World& world, const Plan& plan, const Extent& extent);
  ~Faults() noexcept(false);

  // Resolves when the launcher was killed, with all roles.
  kj::Promise<void> launcherGone() { return kj::mv(gone.promise); }
  // Resolves when the launcher gets SIGTERM, to the time after which it gets a second one.
  kj::Promise<kj::Duration> interrupted() { return kj::mv(interrupt.promise); }
  bool hasLostAll() const { return isOver; }
  bool hasLostPower() const { return lostPower; }
  // The machine runs again.
  void recover() {
    lostPower = false;
    gone = kj::newPromiseAndFulfiller<void>();
    interrupt = kj::newPromiseAndFulfiller<kj::Duration>();
    isOver = false;
  }
  // No fault happens any more.
  void end() {
    isOver = true;
    tasks = nullptr;
  }

private:
  struct AtNumber {
    const Fault& fault;
    uint64_t number;
  };

  void apply(const Fault& fault);
  // Returns one of the processes that run, of that role if one is given.
  kj::Maybe<RoleProcess&> chosen(kj::Maybe<runner::Role> role, uint index);
  void loseAll(bool power);
  void taskFailed(kj::Exception&& e) override;

  World& world;
  kj::PromiseFulfillerPair<void> gone;
  kj::PromiseFulfillerPair<kj::Duration> interrupt;
  kj::Vector<AtNumber> atChange, atSend;
  bool isOver = false;
  bool lostPower = false;
  kj::Own<kj::TaskSet> tasks;
};

}  // namespace simulation
