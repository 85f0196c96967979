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

// Whether `description`, a message of toml++, says that a number is too large for its type.
bool isOutOfRange(kj::StringPtr description);

}  // namespace configs
