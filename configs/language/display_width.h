// configs/language/display_width.h: how many columns of a terminal a text takes.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace configs {

using kj::uint;

// A character with the marks that combine with it. A terminal shows them in one place.
struct Glyph {
  kj::ArrayPtr<const char> bytes;  // points into the text
  uint columns;
};

// Splits `text` (UTF-8) into its glyphs, from left to right. `text` must outlive the result. The C
// library decides the widths: a Chinese character and an emoji take two columns. Control characters
// and bytes that are not UTF-8 take one column each. On a machine without a UTF-8 locale, every
// character takes one column.
kj::Array<Glyph> glyphsOf(kj::ArrayPtr<const char> text);

// Returns how many columns of a terminal `text` takes.
uint columnsOf(kj::ArrayPtr<const char> text);

// Returns what a terminal shows in place of text that is cut out: `…`, or `...` if the environment
// (LC_ALL, else LC_CTYPE, else LANG) names a locale that is not a UTF-8 one, such as `C`.
kj::StringPtr ellipsis();

}  // namespace configs
