#include "configs/language/printable.h"

#include <doctest/doctest.h>

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

TEST_CASE("printableLines: keeps line ends and tabs") {
  CHECK(printableLines("a\n\tb\x1b\n") == "a\n\tb\\x1b\n");
}

}  // namespace
}  // namespace configs
