#include "runner/text/shell_word.h"

#include <kj/vector.h>
#include <stdlib.h>
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

kj::Maybe<kj::Array<kj::String>> wordsOfShell(kj::StringPtr command) {
  kj::Vector<kj::String> words;
  kj::Vector<char> word;
  bool isWord = false;  // "" is one, too
  char quote = 0;       // within which quotes
  auto isBlank = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  for (size_t i = 0; i < command.size(); i++) {
    char c = command[i];
    if (quote == 0 && isBlank(c)) {
      if (isWord) words.add(kj::heapString(word));
      word.clear();
      isWord = false;
      continue;
    }
    bool isFirst = !isWord;
    isWord = true;
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'') {
      if (++i == command.size()) return nullptr;
      // Within quotes, a backslash before any other character is one.
      bool isPlain = quote == '"' && ::strchr("$`\"\\", command[i]) == nullptr;
      if (isPlain) word.add('\\');
      word.add(command[i]);
    } else if (c == '~' && quote == 0 && isFirst) {
      char next = i + 1 < command.size() ? command[i + 1] : ' ';
      auto home = next == '/' || isBlank(next) ? ::getenv("HOME") : nullptr;
      word.addAll(kj::StringPtr(home == nullptr ? "~" : home));
    } else {
      word.add(c);
    }
  }
  if (quote != 0) return nullptr;
  if (isWord) words.add(kj::heapString(word));
  return words.releaseAsArray();
}

}  // namespace runner
