// configs/language/syntax_error.h: what the TOML parser says, in the words of our other messages.
#pragma once

#include <kj/string.h>

#include "configs/language/diagnostics.h"

namespace configs {

// Reports a syntax error of `source`. `description` is toml++'s, at the place it names; the carets
// go under the whole word or key that is wrong.
void reportSyntax(const Source& source, uint line, uint column, kj::StringPtr description,
    Diagnostics& diagnostics);

// Whether toml++ complains of a number that is too large for its type.
bool isOutOfRange(kj::StringPtr description);

}  // namespace configs
