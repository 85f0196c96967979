// runner/experiment/experiment_checks.h: what the keys of several sections must fulfil together.
#pragma once

#include "runner/experiment/experiment.h"

namespace runner {

// Reports what does not fit together in an experiment, whatever its data set is: roles, devices,
// what happens after a loss, the end of the run, expectations. `reader` has read all sections.
void checkTogether(const Experiment& experiment, configs::Reader& reader);

// Reports what does not fit together in the network and its data set, as checkAgainst() does. If
// the shape of the images is not known yet, checks only groups of keys.
void checkNetwork(const Experiment& experiment, configs::Diagnostics& diagnostics);

}  // namespace runner
