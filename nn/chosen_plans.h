// nn/chosen_plans.h: which plans the devices of this process have chosen, where a device has
// several plans for one computation. The bits of the results depend on the plans, so a resumed run
// must choose the same ones.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace nn {

// All functions can be called from any thread.

// The plan that a device has chosen for a problem.
struct ChosenPlan {
  kj::String problem;  // what is computed, on which device, with which libraries. One line
  kj::String name;     // of the plan
};

// Asks for the plans with which a run has computed so far. Call it before programs are made.
void wantPlans(kj::Array<ChosenPlan> plans);

// Returns the plan that wantPlans() has asked for. Null if there is none for this problem. A device
// calls it before it chooses.
kj::Maybe<kj::String> wantedPlan(kj::StringPtr problem);
// Records which plan a device has chosen. `name` differs from wantedPlan() if the device does not
// have that plan.
void noteChosenPlan(kj::StringPtr problem, kj::StringPtr name);

// Returns all plans that were chosen so far, sorted by problem.
kj::Array<ChosenPlan> chosenPlans();
// Returns how many of the wanted plans no device has chosen.
size_t missingPlans();

}  // namespace nn
