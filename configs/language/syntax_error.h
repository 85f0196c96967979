// configs/language/syntax_error.h: reports errors of the TOML parser in the style of our other
// messages.
#pragma once

#include <kj/string.h>

#include "configs/language/diagnostics.h"

namespace configs {

// Reports a syntax error of `source`. `description` and the place are those of toml++. The carets
// mark the whole word or key that is wrong.
void reportSyntax(const Source& source, uint line, uint column, kj::StringPtr description,
    Diagnostics& diagnostics);

// The most parts of a key: `a.b.c` has three.
constexpr uint KEY_PARTS_MAX = 256;

// Reports a key, or a header, with too many parts, and returns whether `source` has one. Each part
// is a table inside of the one before it, and functions that walk through tables would overflow the
// stack. toml++ limits only how deeply values are nested.
bool reportLongKey(const Source& source, Diagnostics& diagnostics);

// Whether `description`, a message of toml++, says that a number is too large for its type.
bool isOutOfRange(kj::StringPtr description);

}  // namespace configs
