// runner/commands/update_plan.h: explains to people how keys are updated, and for how long.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/text/text_table.h"

namespace runner {

// Returns one row for the keys of each of [[train.groups]], and one for those without a group. A
// row has the rule, learning rate and decay with their factors, how many updates the keys take part
// in, the length of their schedule in updates, and how many of these warm up. Keys whose layers
// give them factors of their own have a separate row.
TextTable updatePlan(const Experiment& experiment, const ModelFacts& facts);

// Returns one sentence per schedule that never finishes its warm-up: "the warm-up takes 7820
// updates, but the run has only 3910".
kj::Array<kj::String> endlessWarmUps(const Experiment& experiment, const ModelFacts& facts);

}  // namespace runner
