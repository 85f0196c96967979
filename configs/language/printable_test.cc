#include "configs/language/printable.h"

#include <doctest/doctest.h>
#include <kj/vector.h>
#include <string.h>

namespace configs {
namespace {

TEST_CASE("printable: shows control characters as their bytes, and keeps all other text") {
  CHECK(printable("a\x1b[31mb\nc\td\x7f") == "a\\x1b[31mb\\x0ac\\x09d\\x7f");
  CHECK(printable("28×28 ≥ ü €") == "28×28 ≥ ü €");
  CHECK(printable("") == "");
}

TEST_CASE("printable: replaces a two-byte control character as one, and leaves half of one alone") {
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");
  CHECK(printable("\xc2") == "\xc2");
  CHECK(printable("\xc2\xa0") == "\xc2\xa0");
}

TEST_CASE("printable: shows characters that reverse the text after them") {
  CHECK(printable("a\xe2\x80\xaegpj.exe") == "a\\xe2\\x80\\xaegpj.exe");
  CHECK(printable("\u202a\u2069") == "\\xe2\\x80\\xaa\\xe2\\x81\\xa9");
  CHECK(printable("\u2029\u202f\u2065\u206a \xe2\x80") == "\u2029\u202f\u2065\u206a \xe2\x80");
}

TEST_CASE("printable: leaves out the middle of a long text, between two characters") {
  auto four = kj::str(kj::repeat('a', 4096));
  CHECK(printable(four) == four);
  auto name = kj::repeat('k', 1000000);
  auto message = printable(kj::str("unknown key `", name, "` in [\x1b]"));
  CHECK(message.startsWith("unknown key `kkk"));
  CHECK(message.endsWith("kkk` in [\\x1b]"));
  CHECK(strstr(message.cStr(), "kkk... (996949 bytes left out) ...kkk") != nullptr);
  CHECK(message.size() < 3200);

  kj::Vector<char> wide;
  for (size_t i = 0; i < 3000; ++i) wide.addAll(kj::StringPtr("€"));
  auto shortened = printable(kj::heapString(wide));
  CHECK(strstr(shortened.cStr(), "€... (5928 bytes left out) ...€") != nullptr);
}

TEST_CASE("withoutControls: puts one character in place of each control character") {
  CHECK(withoutControls("a\x1b[31mb\nc\x7f\xc2\x9b", '?') == "a?[31mb?c??");
  CHECK(withoutControls("ü\xc2\xa0€\xc2", ' ') == "ü\xc2\xa0€\xc2");
}

TEST_CASE("printableLines: keeps line ends and tabs") {
  CHECK(printableLines("a\n\tb\x1b\n") == "a\n\tb\\x1b\n");
}

}  // namespace
}  // namespace configs
