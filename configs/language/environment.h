// configs/language/environment.h: what the process was told by its environment.
#pragma once

#include <kj/string.h>

namespace configs {

// The value of a variable; null if it is not set, or empty. Valid as long as nobody sets it.
kj::Maybe<kj::StringPtr> environment(const char* name);

// The folder of what is kept from run to run, which need not be there yet: $RUNNER_CACHE, else
// $XDG_CACHE_HOME/runner, else ~/.cache/runner. Throws with the way out if none of them is known.
kj::String cacheFolder();

}  // namespace configs
