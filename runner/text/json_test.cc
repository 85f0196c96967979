#include "runner/text/json.h"

#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <doctest/doctest.h>

namespace runner {
namespace {

TEST_CASE("inJson: adds quotes around a text") {
  CHECK(inJson("") == "\"\"");
  CHECK(inJson("conv1.weight ~!") == "\"conv1.weight ~!\"");
  CHECK(inJson("学習率") == "\"学習率\"");
}

TEST_CASE("inJson: escapes quotes, backslashes and control characters") {
  CHECK(inJson("a \"b\" c") == "\"a \\\"b\\\" c\"");
  CHECK(inJson("C:\\data") == "\"C:\\\\data\"");
  CHECK(inJson("one\ntwo\t\x01") == "\"one\\ntwo\\t\\u0001\"");
}

TEST_CASE("inJson: replaces invalid UTF-8") {
  CHECK(inJson("a\xff z") == "\"a\xef\xbf\xbd z\"");
  CHECK(inUtf8("a\xff z") == "a\xef\xbf\xbd z");
  CHECK(inUtf8("学習率") == "学習率");
}

kj::String decoded(kj::StringPtr json) {
  capnp::MallocMessageBuilder message;
  auto value = message.initRoot<capnp::JsonValue>();
  decodeJson(
      json, [&](kj::ArrayPtr<const char> json) { capnp::JsonCodec().decodeRaw(json, value); });
  return kj::str(value.getString());
}

TEST_CASE("decodeJson: reads every escape of a character") {
  CHECK(withoutHexEscapes("\"plain\""_kj) == nullptr);
  CHECK(decoded(R"("caf\u00e9 \u00C9")") == "café É");
  CHECK(decoded(R"("\u5b66\u7fd2\u7387")") == "学習率");
  CHECK(decoded(R"("a \u0022b\u005c")") == "a \"b\\");
  CHECK(decoded(R"("\ud83d\ude00 \ud83d \ude00")") == "😀 \xef\xbf\xbd \xef\xbf\xbd");
  // This is not an escape of a character: the backslash itself is escaped.
  CHECK(decoded(R"("\\u00e9")") == R"(\u00e9)");
}

TEST_CASE("decodeJson: reads what inJson() has written") {
  for (char c = 1; c < 127; ++c) {
    auto text = kj::str("a", c, "b");
    CHECK(decoded(inJson(text)) == text);
  }
}

}  // namespace
}  // namespace runner
