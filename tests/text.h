// tests/text.h: searches texts in tests, and lets doctest print KJ's strings.
#pragma once

#include <doctest/doctest.h>
#include <kj/string.h>
#include <string.h>

namespace tests {

inline bool contains(kj::StringPtr text, kj::StringPtr part) {
  return ::memmem(text.begin(), text.size(), part.begin(), part.size()) != nullptr;
}

// Returns how often `part` occurs in `text`.
inline size_t countOf(kj::StringPtr text, kj::StringPtr part) {
  size_t count = 0;
  while (auto found = ::memmem(text.begin(), text.size(), part.begin(), part.size())) {
    text = text.slice(static_cast<const char*>(found) - text.begin() + part.size());
    count++;
  }
  return count;
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
