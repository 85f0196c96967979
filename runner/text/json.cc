#include "runner/text/json.h"

#include <capnp/compat/json.h>
#include <kj/encoding.h>
#include <kj/vector.h>
#include <string.h>

namespace runner {

namespace {

// Whether this text is the same in JSON, between two quotes.
bool isPlain(kj::StringPtr text) {
  for (char c: text) {
    bool isItself = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    if (!isItself) return false;
  }
  return true;
}

constexpr size_t ESCAPE_LENGTH = 6;

// Returns the number that `\uXXXX` at `at` stands for. Null if there is no such escape.
kj::Maybe<char32_t> escapeAt(kj::ArrayPtr<const char> json, size_t at) {
  if (at + ESCAPE_LENGTH > json.size() || json[at] != '\\' || json[at + 1] != 'u') return nullptr;
  char32_t number = 0;
  for (char c: json.slice(at + 2, at + ESCAPE_LENGTH)) {
    if (c >= '0' && c <= '9') {
      number = number * 16 + (c - '0');
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      number = number * 16 + ((c | 0x20) - 'a' + 10);
    } else {
      return nullptr;
    }
  }
  return number;
}

bool isHigh(char32_t number) {
  return number >= 0xd800 && number < 0xdc00;
}
bool isLow(char32_t number) {
  return number >= 0xdc00 && number < 0xe000;
}

}  // namespace

kj::Maybe<kj::String> withoutHexEscapes(kj::ArrayPtr<const char> json) {
  constexpr char MARK[] = {'\\', 'u'};
  if (::memmem(json.begin(), json.size(), MARK, sizeof(MARK)) == nullptr) return nullptr;
  kj::Vector<char> result(json.size());
  for (size_t at = 0; at < json.size();) {
    KJ_IF_MAYBE(escape, escapeAt(json, at)) {
      char32_t number = *escape;
      // The decoder treats a 0 as the end of the text.
      if (number == 0) result.addAll(json.slice(at, at + ESCAPE_LENGTH));
      at += ESCAPE_LENGTH;
      if (number == 0) continue;
      // Beyond 16 bits, two escapes stand for one character.
      KJ_IF_MAYBE(low, escapeAt(json, at)) {
        if (isHigh(number) && isLow(*low)) {
          number = 0x10000 + ((number - 0xd800) << 10) + (*low - 0xdc00);
          at += ESCAPE_LENGTH;
        }
      }
      if (isHigh(number) || isLow(number)) number = 0xfffd;
      if (number == '"' || number == '\\') result.add('\\');
      auto text = kj::decodeUtf32(kj::arrayPtr(&number, 1));
      result.addAll(text.asArray());
    } else {
      // A backslash and the character that it escapes stay together.
      size_t count = json[at] == '\\' && at + 1 < json.size() ? 2 : 1;
      result.addAll(json.slice(at, at + count));
      at += count;
    }
  }
  return kj::heapString(result);
}

kj::String inUtf8(kj::StringPtr text) {
  auto decoded = kj::encodeUtf32(text);
  return decoded.hadErrors ? kj::String(kj::decodeUtf32(decoded)) : kj::str(text);
}

kj::String inJson(kj::StringPtr text) {
  // Names of tensors are plain. For each text, the codec allocates and clears 8 KiB.
  if (isPlain(text)) return kj::str('"', text, '"');
  auto valid = inUtf8(text);
  return capnp::JsonCodec().encode(capnp::Text::Reader(valid));
}

}  // namespace runner
