#include "runner/text/shell_word.h"

#include <kj/vector.h>
#include <string.h>

namespace runner {

kj::String shellWord(kj::StringPtr word) {
  constexpr kj::StringPtr PLAIN =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=@%+"_kj;
  if (word.size() > 0 && ::strspn(word.cStr(), PLAIN.cStr()) == word.size()) return kj::str(word);
  kj::Vector<char> quoted;
  quoted.add('\'');
  for (char c: word) {
    if (c == '\'') {
      // Ends the quotes, adds one that is escaped, and begins again.
      quoted.addAll("'\\''"_kj);
    } else {
      quoted.add(c);
    }
  }
  quoted.add('\'');
  return kj::heapString(quoted);
}

}  // namespace runner
