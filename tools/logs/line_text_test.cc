#include "tools/logs/line_text.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <math.h>

#include "tests/text.h"

namespace tools {
namespace {

TEST_CASE("LineText: taking a text removes it from the front or the end of the line") {
  LineText rest = "Step: 12 of345"_kj;
  CHECK_FALSE(take(rest, "step"));
  CHECK(take(rest, "Step:"));
  takeSpaces(rest);
  CHECK(KJ_ASSERT_NONNULL(takeCount(rest)) == 12);
  CHECK(takeCount(rest) == nullptr);
  CHECK(KJ_ASSERT_NONNULL(takeCountFromEnd(rest)) == 345);
  CHECK(kj::heapString(rest) == " of");
}

TEST_CASE("takeCount: takes at most nine digits") {
  LineText nine = "999999999"_kj, ten = "1234567890"_kj;
  LineText both = nine;
  CHECK(KJ_ASSERT_NONNULL(takeCount(both)) == 999999999);
  CHECK(KJ_ASSERT_NONNULL(takeCountFromEnd(nine)) == 999999999);
  CHECK(takeCount(ten) == nullptr);
  CHECK(takeCountFromEnd(ten) == nullptr);
  CHECK(ten.size() == 10);
}

TEST_CASE("takeValue: a figure beyond the range of a double is infinite or 0") {
  auto value = [](kj::StringPtr text) {
    LineText rest = text.asArray();
    auto value = takeValue(rest);
    CHECK(startsWith(rest, ","));
    return KJ_ASSERT_NONNULL(value);
  };
  CHECK(value("1e400,") == INFINITY);
  CHECK(value("-1e400,") == -INFINITY);
  CHECK(value("1e-400,") == 0);
  CHECK(value("1e300,") == 1e300);
}

TEST_CASE("eachLine: numbers lines from 1, and the last line needs no newline") {
  kj::String seen = kj::str();
  eachLine("a\n\nb"_kj.asArray(), [&](LineText line, uint64_t number) {
    seen = kj::str(seen, number, kj::heapString(line), ';');
  });
  CHECK(seen == "1a;2;3b;");
  eachLine(nullptr, [&](LineText, uint64_t) { FAIL("an empty text has no lines"); });
}

TEST_CASE("eachLine: a quoted newline of a notebook ends a line, and the rest keeps its number") {
  kj::String seen = kj::str();
  eachLine("\"a\\n\",\n\"b\""_kj.asArray(), [&](LineText line, uint64_t number) {
    seen = kj::str(seen, number, kj::heapString(line), ';');
  });
  CHECK(seen == "1\"a;1\",;2\"b\";");
}

TEST_CASE("takeGap: takes spaces and tabs, quoted tabs included") {
  LineText rest = "\t \\tx"_kj;
  CHECK(takeGap(rest));
  CHECK(kj::heapString(rest) == "x");
  CHECK_FALSE(takeGap(rest));
}

TEST_CASE("endsHere: a word ends before a space or a quote") {
  for (auto rest: {""_kj, " x"_kj, "\r"_kj, "\","_kj, "'"_kj, "```"_kj, "\\tx"_kj}) {
    INFO(rest.cStr());
    CHECK(endsHere(rest));
  }
  CHECK_FALSE(endsHere("x"_kj));
  CHECK_FALSE(endsHere(".5"_kj));
}

}  // namespace
}  // namespace tools
