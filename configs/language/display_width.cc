#include "configs/language/display_width.h"

#include <kj/vector.h>
#include <string.h>
#include <wchar.h>

#include "configs/language/environment.h"
#include "configs/language/utf8_locale.h"

namespace configs {

namespace {

bool isPlain(char c) {
  return c >= ' ' && c < 0x7f;
}

// Returns the first character of `text`, which is not empty, without the marks that follow it.
Glyph firstOf(kj::ArrayPtr<const char> text) {
  wchar_t character;
  mbstate_t state = {};
  size_t bytes = ::mbrtowc(&character, text.begin(), text.size(), &state);
  bool isValid = bytes > 0 && bytes <= text.size();
  if (!isValid) return {text.slice(0, 1), 1};
  int columns = ::wcwidth(character);
  return {text.slice(0, bytes), columns < 0 ? 1 : uint(columns)};
}

// The same for a machine without a UTF-8 locale.
Glyph firstUnknownOf(kj::ArrayPtr<const char> text) {
  size_t bytes = 1;
  while (bytes < text.size() && (text[bytes] & 0xc0) == 0x80) bytes++;
  return {text.slice(0, bytes), 1};
}

}  // namespace

kj::Array<Glyph> glyphsOf(kj::ArrayPtr<const char> text) {
  static const Utf8Locale UTF8;
  Utf8Locale::Scope scope(UTF8);
  kj::Vector<Glyph> glyphs;
  while (text.size() > 0) {
    auto glyph = isPlain(text[0]) ? Glyph{text.slice(0, 1), 1}
                 : UTF8.isThere() ? firstOf(text)
                                  : firstUnknownOf(text);
    text = text.slice(glyph.bytes.size(), text.size());
    bool combines = glyph.columns == 0 && !glyphs.empty();
    if (combines) {
      auto& last = glyphs.back().bytes;
      last = kj::arrayPtr(last.begin(), glyph.bytes.end());
    } else {
      glyphs.add(glyph);
    }
  }
  return glyphs.releaseAsArray();
}

uint columnsOf(kj::ArrayPtr<const char> text) {
  uint columns = 0;
  for (auto& glyph: glyphsOf(text)) columns += glyph.columns;
  return columns;
}

kj::StringPtr ellipsis() {
  for (auto name: {"LC_ALL", "LC_CTYPE", "LANG"}) {
    KJ_IF_MAYBE(locale, environment(name)) {
      bool isUtf8 = ::strcasestr(locale->cStr(), "utf-8") || ::strcasestr(locale->cStr(), "utf8");
      return isUtf8 ? "…"_kj : "..."_kj;
    }
  }
  return "…"_kj;
}

}  // namespace configs
