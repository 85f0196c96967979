// runner/experiment/shown_experiment.h: experiments and their values for others than their owner.
#pragma once

#include <kj/string.h>

namespace runner {

// Returns `resolved`, the text of an experiment.toml, with each address as messages show it:
// without its query and its password, which may be secrets.
kj::String withoutSecrets(kj::StringPtr resolved);

// Returns a shortValue(), or a list, in the same way.
kj::String withoutSecretsOfValue(kj::StringPtr value);

}  // namespace runner
