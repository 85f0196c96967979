// runner/text/shell_word.h: words of commands that a person copies into a shell.
#pragma once

#include <kj/string.h>

namespace runner {

// Returns `word` so that a POSIX shell reads it as one word with just these characters.
kj::String shellWord(kj::StringPtr word);

}  // namespace runner
