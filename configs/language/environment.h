// configs/language/environment.h: the environment variables of the process.
#pragma once

#include <kj/string.h>

namespace configs {

// Returns the value of a variable, or null if it is not set or empty. The result is valid until
// somebody sets the variable.
kj::Maybe<kj::StringPtr> environment(const char* name);

// Returns the folder for files that later runs use again: $RUNNER_CACHE, else
// $XDG_CACHE_HOME/runner, else ~/.cache/runner. The folder may not exist yet. Throws with the way
// out if none of these variables is set.
kj::String cacheFolder();

}  // namespace configs
