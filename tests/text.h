// tests/text.h: lets doctest show KJ's strings as what they are.
#pragma once

#include <doctest/doctest.h>
#include <kj/string.h>

namespace doctest {

template <>
struct StringMaker<kj::StringPtr> {
  static String convert(kj::StringPtr text) { return text.cStr(); }
};

template <>
struct StringMaker<kj::String> {
  static String convert(const kj::String& text) { return text.cStr(); }
};

}  // namespace doctest
