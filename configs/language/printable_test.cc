#include "configs/language/printable.h"

#include <doctest/doctest.h>

namespace configs {
namespace {

TEST_CASE("printable: control characters are shown as their bytes, all other text stays") {
  CHECK(printable("a\x1b[31mb\nc\td\x7f") == "a\\x1b[31mb\\x0ac\\x09d\\x7f");
  CHECK(printable("28×28 ≥ ü €") == "28×28 ≥ ü €");
  CHECK(printable("") == "");
}

TEST_CASE("printable: a control character of two bytes is one, and half of one is none") {
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");
  CHECK(printable("\xc2") == "\xc2");
  CHECK(printable("\xc2\xa0") == "\xc2\xa0");
}

TEST_CASE("printableLines: line ends and tabs stay") {
  CHECK(printableLines("a\n\tb\x1b\n") == "a\n\tb\\x1b\n");
}

}  // namespace
}  // namespace configs
