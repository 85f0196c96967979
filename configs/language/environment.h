// configs/language/environment.h: the environment variables of the process.
#pragma once

#include <kj/string.h>

namespace configs {

// Returns the value of a variable, or null if it is not set or empty. The result is valid until the
// variable is changed.
kj::Maybe<kj::StringPtr> environment(const char* name);

// Returns the folder for files that later runs reuse: $RUNNER_CACHE, else $XDG_CACHE_HOME/runner,
// else ~/.cache/runner. The folder may not exist yet. Throws, and says what to do, if none of these
// variables is set.
kj::String cacheFolder();

}  // namespace configs
