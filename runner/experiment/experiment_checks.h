// runner/experiment/experiment_checks.h: checks that involve the keys of several sections.
#pragma once

#include "runner/experiment/experiment.h"

namespace runner {

// Reports contradictions in an experiment that do not depend on its data set: between roles,
// devices, what happens when a role is lost, the end of the run, and expectations. `reader` has
// read all sections.
void checkTogether(const Experiment& experiment, configs::Reader& reader);

// Reports contradictions between the network and its data set, as checkAgainst() does. If the shape
// of the images is not known yet, checks only groups of keys.
void checkNetwork(const Experiment& experiment, configs::Diagnostics& diagnostics);

}  // namespace runner
