// tests/text.h: texts in tests: how doctest shows KJ's strings, and what is in them.
#pragma once

#include <doctest/doctest.h>
#include <kj/string.h>
#include <string.h>

namespace tests {

inline bool contains(kj::StringPtr text, kj::StringPtr part) {
  return ::memmem(text.begin(), text.size(), part.begin(), part.size()) != nullptr;
}

}  // namespace tests

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
