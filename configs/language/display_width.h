// configs/language/display_width.h: how many columns of a terminal a text takes.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace configs {

using kj::uint;

// A character of a text, and the marks that combine with it: what a terminal shows in one place.
struct Glyph {
  kj::ArrayPtr<const char> bytes;  // of the text
  uint columns;
};

// `text` (UTF-8) from left to right, which must outlive the result. As the C library has it, a
// Chinese character and an emoji take two columns. Control characters and bytes that are not UTF-8
// take one each; so does any character on a machine without a UTF-8 locale.
kj::Array<Glyph> glyphsOf(kj::ArrayPtr<const char> text);

// How many columns `text` takes.
uint columnsOf(kj::ArrayPtr<const char> text);

}  // namespace configs
