#include "nn/chosen_plans.h"

#include <doctest/doctest.h>

namespace nn {
namespace {

TEST_CASE("chosen plans: finds plans that were asked for, and remembers which ones were chosen") {
  CHECK(wantedPlan("forward") == nullptr);
  noteChosenPlan("forward", "first");
  // A chosen plan does not count as one that was asked for.
  CHECK(wantedPlan("forward") == nullptr);
  CHECK(missingPlans() == 0);

  auto plans = kj::heapArrayBuilder<ChosenPlan>(2);
  plans.add(ChosenPlan{kj::str("forward"), kj::str("second")});
  plans.add(ChosenPlan{kj::str("backward"), kj::str("third")});
  wantPlans(plans.finish());
  CHECK(wantedPlan("forward").orDefault(nullptr) == "second");
  CHECK(wantedPlan("elsewhere") == nullptr);
  CHECK(missingPlans() == 2);
  noteChosenPlan("forward", "second");
  CHECK(missingPlans() == 1);
  noteChosenPlan("backward", "fourth");
  CHECK(missingPlans() == 1);

  auto chosen = chosenPlans();
  REQUIRE(chosen.size() == 2);
  CHECK(chosen[0].problem == "backward");
  CHECK(chosen[0].name == "fourth");
  CHECK(chosen[1].problem == "forward");
  CHECK(chosen[1].name == "second");
}

}  // namespace
}  // namespace nn
