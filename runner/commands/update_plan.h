// runner/commands/update_plan.h: how keys are updated, and for how long, for people.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/text/text_table.h"

namespace runner {

// A row for the keys of each of [[train.groups]], and one for those without a group: rule, learning
// rate and decay with their factors, how long they are updated, of how many updates their schedule
// is, and how many of these warm up. Keys whose layers give them factors of their own have a row
// apart.
TextTable updatePlan(const Experiment& experiment, const ModelFacts& facts);

// Of schedules that never get through their warm-up, a sentence each: "the warm-up ends after
// update 7820, the run after 3910".
kj::Array<kj::String> endlessWarmUps(const Experiment& experiment, const ModelFacts& facts);

}  // namespace runner
