// runner/experiment/shown_experiment.h: the text of an experiment for others than its owner.
#pragma once

#include <kj/string.h>

namespace runner {

// Returns `resolved`, the text of an experiment.toml, with each address as messages show it:
// without its query and its password, which may be secrets.
kj::String withoutSecrets(kj::StringPtr resolved);

}  // namespace runner
