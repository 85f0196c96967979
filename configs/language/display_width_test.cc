#include "configs/language/display_width.h"

#include <doctest/doctest.h>
#include <locale.h>
#include <stdlib.h>

namespace configs {
namespace {

uint widthOf(kj::StringPtr text) {
  return columnsOf(text);
}

TEST_CASE("columnsOf: a character takes as many columns as a terminal gives it") {
  CHECK(widthOf("") == 0);
  CHECK(widthOf("Äpfel …×") == 8);
  CHECK(widthOf("学習率") == 6);
  CHECK(widthOf("🙂!") == 3);
  // Two marks on an `e`.
  CHECK(widthOf("e\u0301\u0323") == 1);
}

TEST_CASE("columnsOf: bytes that are not UTF-8 and control characters take one column each") {
  CHECK(widthOf("\xff\xe2\x80") == 3);
  CHECK(widthOf("a\tb\x1b") == 4);
}

TEST_CASE("glyphsOf: a mark stays with the character before it") {
  auto text = "e\u0301学a"_kj;
  auto glyphs = glyphsOf(text);
  REQUIRE(glyphs.size() == 3);
  CHECK(kj::heapString(glyphs[0].bytes) == "e\u0301");
  CHECK(glyphs[0].columns == 1);
  CHECK(kj::heapString(glyphs[1].bytes) == "学");
  CHECK(glyphs[1].columns == 2);
  CHECK(glyphs[2].bytes.end() == text.end());
}

TEST_CASE("columnsOf: does not change the locale of the program") {
  auto before = ::uselocale(locale_t(0));
  CHECK(widthOf("学") == 2);
  CHECK(::uselocale(locale_t(0)) == before);
  CHECK(kj::StringPtr(::setlocale(LC_ALL, nullptr)) == "C");
}

TEST_CASE("ellipsis: is ASCII if the environment names a locale that is not a UTF-8 one") {
  auto with = [](kj::StringPtr all, kj::StringPtr type, kj::StringPtr language) {
    ::setenv("LC_ALL", all.cStr(), 1);
    ::setenv("LC_CTYPE", type.cStr(), 1);
    ::setenv("LANG", language.cStr(), 1);
    auto text = ellipsis();
    for (auto name: {"LC_ALL", "LC_CTYPE", "LANG"}) ::unsetenv(name);
    return text;
  };
  CHECK(with("", "", "") == "…");
  CHECK(with("", "", "de_DE.UTF-8") == "…");
  CHECK(with("", "", "en_US.utf8") == "…");
  CHECK(with("", "", "C") == "...");
  CHECK(with("", "POSIX", "de_DE.UTF-8") == "...");
  CHECK(with("C", "C.UTF-8", "C.UTF-8") == "...");
  CHECK(with("C.UTF-8", "C", "C") == "…");
}

}  // namespace
}  // namespace configs
