#include "runner/text/yaml_text.h"

#include <kj/debug.h>
#include <kj/encoding.h>
#include <kj/vector.h>
#include <string.h>
#include <strings.h>

namespace runner {

namespace {

bool isLetter(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z');
}

// Whether some version of YAML reads this word as something else than a string.
bool isKeyword(kj::StringPtr word) {
  for (auto each: {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}) {
    if (::strcasecmp(word.cStr(), each) == 0) return true;
  }
  return false;
}

}  // namespace

kj::String yamlText(kj::StringPtr text) {
  constexpr kj::StringPtr PLAIN =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./"_kj;
  bool isPlain = text.size() > 0 && (isLetter(text[0]) || text[0] == '/') &&
                 ::strspn(text.cStr(), PLAIN.cStr()) == text.size() && !isKeyword(text);
  if (isPlain) return kj::str(text);
  kj::Vector<char> quoted;
  quoted.add('"');
  for (char c: text) {
    if (c == '"' || c == '\\') quoted.add('\\');
    if (0 <= c && c < ' ') {
      quoted.addAll(kj::str("\\x", kj::encodeHex(kj::arrayPtr(&c, 1).asBytes())));
    } else {
      quoted.add(c);
    }
  }
  quoted.add('"');
  return kj::heapString(quoted);
}

kj::String yamlBlock(kj::StringPtr text, kj::uint indent) {
  KJ_REQUIRE(text.endsWith("\n") && !text.startsWith(" ") && !text.startsWith("\n"));
  kj::Vector<char> block;
  block.addAll("|\n"_kj);
  bool atBegin = true;
  for (char c: text) {
    KJ_REQUIRE(c == '\n' || c == '\t' || c < 0 || c >= ' ', "not a character of YAML", int(c));
    // An empty line has no spaces.
    if (atBegin && c != '\n') {
      for (kj::uint i = 0; i < indent; i++) block.add(' ');
    }
    block.add(c);
    atBegin = c == '\n';
  }
  return kj::heapString(block);
}

}  // namespace runner
