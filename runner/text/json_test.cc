#include "runner/text/json.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

TEST_CASE("inJson: a text stands between quotes") {
  CHECK(inJson("") == "\"\"");
  CHECK(inJson("conv1.weight ~!") == "\"conv1.weight ~!\"");
  CHECK(inJson("学習率") == "\"学習率\"");
}

TEST_CASE("inJson: escapes quotes, backslashes and control characters") {
  CHECK(inJson("a \"b\" c") == "\"a \\\"b\\\" c\"");
  CHECK(inJson("C:\\data") == "\"C:\\\\data\"");
  CHECK(inJson("one\ntwo\t\x01") == "\"one\\ntwo\\t\\u0001\"");
}

TEST_CASE("inJson: replaces what is not UTF-8") {
  CHECK(inJson("a\xff z") == "\"a\xef\xbf\xbd z\"");
}

}  // namespace
}  // namespace runner
