#include "configs/language/printable.h"

#include <kj/vector.h>

namespace configs {

namespace {

// Returns how many bytes at `at` form one control character, or 0. Those from U+0080 to U+009F have
// two bytes. Those that change the direction of the text after them (U+202A to U+202E and U+2066 to
// U+2069) have three. They could make one name look like another.
size_t controlBytesAt(kj::ArrayPtr<const char> text, size_t at) {
  auto byteAt = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  auto isWithin = [&](size_t i, int first, int last) {
    return byteAt(i) >= first && byteAt(i) <= last;
  };
  if (byteAt(0) < ' ' || byteAt(0) == 0x7f) return 1;
  if (byteAt(0) == 0xc2 && isWithin(1, 0x80, 0x9f)) return 2;
  if (byteAt(0) != 0xe2) return 0;
  bool isEmbedding = byteAt(1) == 0x80 && isWithin(2, 0xaa, 0xae);
  bool isIsolate = byteAt(1) == 0x81 && isWithin(2, 0xa6, 0xa9);
  return isEmbedding || isIsolate ? 3 : 0;
}

kj::String printableBut(kj::StringPtr kept, kj::ArrayPtr<const char> text) {
  constexpr char DIGITS[] = "0123456789abcdef";
  kj::Vector<char> result(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    size_t control = kept.findFirst(text[at]) == nullptr ? controlBytesAt(text, at) : 0;
    if (control == 0) result.add(text[at++]);
    for (; control > 0; --control) {
      auto byte = static_cast<unsigned char>(text[at++]);
      result.addAll(kj::StringPtr("\\x"));
      result.add(DIGITS[byte / 16]);
      result.add(DIGITS[byte % 16]);
    }
  }
  result.add('\0');
  return kj::String(result.releaseAsArray());
}

// A longer text is cut. Sentences of our own are much shorter, and so are paths: only a key or a
// string of a file is as long as this.
constexpr size_t BYTES_MAX = 4096;
constexpr size_t BEGIN_BYTES = 2048, END_BYTES = 1024;

// Returns the first place from `at` on, but at most 3 bytes behind it, where a character begins.
size_t characterFrom(kj::StringPtr text, size_t at) {
  auto isWithin = [&](size_t i) { return (text[i] & 0xc0) == 0x80; };
  for (size_t end = at + 3; at < end && isWithin(at);) ++at;
  return at;
}

}  // namespace

kj::String printable(kj::StringPtr text) {
  if (text.size() <= BYTES_MAX) return printableBut("", text);
  size_t begin = characterFrom(text, BEGIN_BYTES);
  size_t end = characterFrom(text, text.size() - END_BYTES);
  return kj::str(printableBut("", text.slice(0, begin)), "... (", end - begin,
      " bytes left out) ...", printableBut("", text.slice(end)));
}

kj::String printableLines(kj::StringPtr text) {
  return printableBut("\n\t", text);
}

kj::String withoutControls(kj::StringPtr text, char substitute) {
  kj::Vector<char> result(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    size_t control = controlBytesAt(text, at);
    result.add(control > 0 ? substitute : text[at]);
    at += kj::max(control, size_t(1));
  }
  result.add('\0');
  return kj::String(result.releaseAsArray());
}

}  // namespace configs
