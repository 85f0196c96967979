// tests/text.h: texts in tests: how doctest shows KJ's strings, and what is in them.
#pragma once

#include <doctest/doctest.h>
#include <kj/string.h>
#include <string.h>

namespace tests {

inline bool contains(kj::StringPtr text, kj::StringPtr part) {
  return ::memmem(text.begin(), text.size(), part.begin(), part.size()) != nullptr;
}

// How often `part` is in `text`.
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
