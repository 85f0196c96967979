#include "configs/language/printable.h"

#include <kj/vector.h>

namespace configs {

namespace {

// Returns how many bytes at `at` form one control character, or 0. Those from U+0080 to U+009F have
// two bytes.
size_t controlBytesAt(kj::StringPtr text, size_t at) {
  auto byteAt = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byteAt(at) < ' ' || byteAt(at) == 0x7f) return 1;
  bool isPair = byteAt(at) == 0xc2 && at + 1 < text.size();
  return isPair && byteAt(at + 1) >= 0x80 && byteAt(at + 1) < 0xa0 ? 2 : 0;
}

kj::String printableBut(kj::StringPtr kept, kj::StringPtr text) {
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

}  // namespace

kj::String printable(kj::StringPtr text) {
  return printableBut("", text);
}

kj::String printableLines(kj::StringPtr text) {
  return printableBut("\n\t", text);
}

}  // namespace configs
