#include "runner/text/yaml_text.h"

#include <doctest/doctest.h>

#include "tests/text.h"

namespace runner {
namespace {

TEST_CASE("yamlText: quotes every text that YAML would not read as the same string") {
  for (auto plain: {"runner"_kj, "/run/runner"_kj, "a-b_c.d/e"_kj, "v1"_kj}) {
    CHECK(yamlText(plain) == plain);
  }
  for (auto odd:
      {"2"_kj, "0x1f"_kj, "1e3"_kj, "true"_kj, "No"_kj, "off"_kj, "null"_kj, ""_kj, "~"_kj, "-"_kj,
          "a: b"_kj, "#x"_kj, "2026-11-22"_kj, ".5"_kj, "$(POD_IP)"_kj, "a b"_kj, "größe"_kj}) {
    CHECK(yamlText(odd) == kj::str('"', odd, '"'));
  }
  CHECK(yamlText("a\"b\\c\nd") == "\"a\\\"b\\\\c\\x0ad\"");
}

TEST_CASE("yamlBlock: indents every line that is not empty") {
  CHECK(yamlBlock("a = 1\n\n  b\n", 4) == "|\n    a = 1\n\n      b\n");
  CHECK_THROWS(yamlBlock("a", 2));
  CHECK_THROWS(yamlBlock(" a\n", 2));
  CHECK_THROWS(yamlBlock("a\x01\n", 2));
}

}  // namespace
}  // namespace runner
