// configs/language/warning.h: prints a warning on stderr, in one plain sentence, without ending the
// run.
#pragma once

#include <kj/string.h>

namespace configs {

// Writes `warning: SENTENCE` to stderr as one line, in one piece. Ignores write errors. Can be
// called from any thread.
void warn(kj::StringPtr sentence);

// From now on, warn() passes its line to `write`, which is called by any thread and must not throw.
void writeWarningsWith(void (*write)(kj::String line));

}  // namespace configs
