// tests/simulation/faults.h: lets roles, connections and the machine of a simulated job fail.
#pragma once

#include <kj/async.h>
#include <kj/vector.h>

#include "tests/simulation/plan.h"
#include "tests/simulation/world.h"

namespace simulation {

// Lets the faults of a plan happen. `seconds` and `changes` are those of an undisturbed job: how
// long it takes, and how often it changes the disk.
class Faults final: private kj::TaskSet::ErrorHandler {
public:
  // All arguments must outlive it.
  Faults(World& world, const Plan& plan, double seconds, uint64_t changes);
  ~Faults() noexcept(false);

  // Resolves when the launcher is gone, with all roles.
  kj::Promise<void> launcherGone() { return kj::mv(gone.promise); }
  bool hasLostAll() const { return isOver; }
  bool hasLostPower() const { return lostPower; }
  // The machine runs again.
  void recover() {
    lostPower = false;
    gone = kj::newPromiseAndFulfiller<void>();
    isOver = false;
  }
  // No fault happens any more.
  void end() {
    isOver = true;
    tasks = nullptr;
  }

private:
  struct AtChange {
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
  kj::Vector<AtChange> atChange;
  bool isOver = false;
  bool lostPower = false;
  kj::Own<kj::TaskSet> tasks;
};

}  // namespace simulation
