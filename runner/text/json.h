// runner/text/json.h: texts in the form that JSON needs.
#pragma once

#include <kj/string.h>

namespace runner {

// Returns `text` with U+FFFD in place of invalid UTF-8. JSON text is always UTF-8, so a name from
// JSON can only be compared with a name in this form.
kj::String inUtf8(kj::StringPtr text);

// Returns inUtf8(text) with quotes and escapes.
kj::String inJson(kj::StringPtr text);

// Returns JSON text with characters in place of escapes such as `\u00e9`. Null if it has none. The
// decoder of Cap'n Proto 0.9 reads each digit a … f of such an escape as a value that is 10 too
// small.
kj::Maybe<kj::String> withoutHexEscapes(kj::ArrayPtr<const char> json);

// Calls `decode` with JSON text that Cap'n Proto's decoder reads as it should.
template <typename Func>
void decodeJson(kj::ArrayPtr<const char> json, Func&& decode) {
  KJ_IF_MAYBE(plain, withoutHexEscapes(json)) {
    decode(plain->asArray());
  } else {
    decode(json);
  }
}

}  // namespace runner
