// runner/text/json.h: texts and numbers as JSON has them.
#pragma once

#include <kj/string.h>

namespace runner {

// Returns `text` with quotes and escapes. What is not UTF-8 becomes U+FFFD.
kj::String inJson(kj::StringPtr text);
// Returns a text from which a program reads this number again, or `null` for NaN and infinities,
// which JSON does not have.
kj::String inJson(double value);
kj::String inJson(float value);

}  // namespace runner
