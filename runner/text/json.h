// runner/text/json.h: texts as JSON has them.
#pragma once

#include <kj/string.h>

namespace runner {

// Returns `text` with quotes and escapes. What is not UTF-8 becomes U+FFFD.
kj::String inJson(kj::StringPtr text);

}  // namespace runner
