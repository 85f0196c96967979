#include "nn/chosen_plans.h"

#include <kj/map.h>
#include <kj/mutex.h>

namespace nn {

namespace {

// The names of plans, by problem.
using Names = kj::TreeMap<kj::String, kj::String>;

struct Plans {
  Names wanted, chosen;
};

const kj::MutexGuarded<Plans> PLANS;

void put(Names& names, kj::String problem, kj::String name) {
  names.upsert(kj::mv(problem), kj::mv(name),
      [](kj::String& present, kj::String&& newer) { present = kj::mv(newer); });
}

}  // namespace

void wantPlans(kj::Array<ChosenPlan> plans) {
  auto all = PLANS.lockExclusive();
  for (auto& plan: plans) put(all->wanted, kj::mv(plan.problem), kj::mv(plan.name));
}

kj::Maybe<kj::String> wantedPlan(kj::StringPtr problem) {
  auto all = PLANS.lockExclusive();
  return all->wanted.find(problem).map([](kj::String& name) { return kj::str(name); });
}

void noteChosenPlan(kj::StringPtr problem, kj::StringPtr name) {
  put(PLANS.lockExclusive()->chosen, kj::str(problem), kj::str(name));
}

kj::Array<ChosenPlan> chosenPlans() {
  auto all = PLANS.lockExclusive();
  kj::Vector<ChosenPlan> plans;
  for (auto& entry: all->chosen) plans.add(ChosenPlan{kj::str(entry.key), kj::str(entry.value)});
  return plans.releaseAsArray();
}

size_t missingPlans() {
  auto all = PLANS.lockExclusive();
  size_t missing = 0;
  for (auto& entry: all->wanted) {
    bool isChosen = false;
    KJ_IF_MAYBE(name, all->chosen.find(entry.key)) isChosen = *name == entry.value;
    if (!isChosen) missing++;
  }
  return missing;
}

}  // namespace nn
