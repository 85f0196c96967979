// configs/language/warning.h: how the program says that something is odd, and goes on: one plain
// sentence on stderr.
#pragma once

#include <kj/string.h>

namespace configs {

// Writes `warning: SENTENCE` as one line to stderr, in one piece. Ignores errors of writing. From
// any thread.
void warn(kj::StringPtr sentence);

}  // namespace configs
