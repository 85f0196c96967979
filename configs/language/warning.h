// configs/language/warning.h: prints a warning on stderr, in one plain sentence, without ending the
// run.
#pragma once

#include <kj/string.h>

namespace configs {

// Writes `warning: SENTENCE` to stderr as one line, in one piece. Ignores write errors. Can be
// called from any thread.
void warn(kj::StringPtr sentence);

}  // namespace configs
