// runner/text/shell_word.h: words of commands that a person copies into a shell.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

// Returns `word` so that a POSIX shell reads it as one word with just these characters.
kj::String shellWord(kj::StringPtr word);

// Returns the words of `command`, divided at blanks as a POSIX shell divides them. Quotes and
// backslashes keep blanks in a word, and `~` before `/` or alone is the home folder. All other
// characters, such as `$` and `*`, mean themselves. Null if the command ends within quotes or after
// a backslash.
kj::Maybe<kj::Array<kj::String>> wordsOfShell(kj::StringPtr command);

}  // namespace runner
