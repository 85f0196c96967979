// runner/experiment/shown_experiment.h: shows experiments and their values to other people than
// their owner.
#pragma once

#include <kj/string.h>

namespace runner {

// Returns `resolved`, the text of an experiment.toml, with each address as messages show it:
// without its query and its password, which may be secrets.
kj::String withoutSecrets(kj::StringPtr resolved);

// Does the same for one value: a shortValue(), or a list.
kj::String withoutSecretsOfValue(kj::StringPtr value);

}  // namespace runner
