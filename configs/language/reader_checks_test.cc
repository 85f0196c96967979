// Tests the reader's checks across keys. Such a check reports nothing if another mistake may be the
// cause.
#include <doctest/doctest.h>

#include "configs/language/reader.h"
#include "configs/language/test_experiment.h"

namespace configs {
namespace {

TEST_CASE("Reader: a check across keys reports at the key's value, or at its table") {
  Diagnostics diagnostics;
  auto document = parse("x.toml", "[a]\nb = 1\n", diagnostics);
  Reading reading{diagnostics, {}};
  readDocument(*document, reading, [](Reader& reader) {
    return reader.section("a", "", [](Reader& reader) {
      CHECK(reader.has("b"));
      CHECK(!reader.has("c"));
      CHECK(!reader.isManual());
      reader.integer("b", "", {});
      reader.error("b", "too much", "take one of the two");
      reader.error("c", "too little");
      CHECK(shown(reader.span().toString()) == "x.toml:1:1");
      return true;
    });
  });
  CHECK(shown(diagnostics.format("x.toml")) == R"(x.toml:1:1: error: too little
  1 | [a]
    | ^^^
x.toml:2:5: error: too much
  2 | b = 1
    |     ^
  help: take one of the two
2 errors in x.toml; nothing was started.
)");
}

TEST_CASE("Reader: reports no missing key for a table that has an unknown key") {
  CHECK(errorsOf(R"(name = "a"
[data]
datset = "raw"
)") == R"(x.toml:3:1: error: unknown key `datset` in [data]
  3 | datset = "raw"
    | ^^^^^^
  help: did you mean `dataset`? (dataset, encoding, batch_size, source, mean)
1 error in x.toml; nothing was started.
)");
  // The same for a table with a misspelt header.
  CHECK(errorsOf(R"(name = "a"
[dat]
dataset = "raw"
)") == R"(x.toml:2:2: error: unknown key `dat` at the top level
  2 | [dat]
    |  ^^^
  help: did you mean `data`? (name, data, model, train, log)
1 error in x.toml; nothing was started.
)");
}

TEST_CASE("Reader: a misspelt header is the only error if a table inside has the right one") {
  Diagnostics diagnostics;
  auto document = parse("x.toml", "[otter]\na = 1\n[outer.inner]\n", diagnostics);
  Reading reading{diagnostics, {}};
  readDocument(*document, reading, [](Reader& reader) {
    return reader.section("outer", "", [](Reader& outer) {
      outer.section("inner", "", [](Reader&) { return true; });
      return outer.integer("a", "", {});
    });
  });
  REQUIRE(diagnostics.count() == 1);
  CHECK(diagnostics.all()[0].message == "unknown key `otter` at the top level");
}

TEST_CASE(
    "Reader: a check across keys reports nothing if one of the keys is wrong or may be misspelt") {
  auto isReported = [](kj::StringPtr text) {
    Diagnostics diagnostics;
    auto document = parse("x.toml", text, diagnostics);
    Reading reading{diagnostics, {}};
    readDocument(*document, reading, [](Reader& reader) {
      auto a = reader.integer("a", "", {.atLeast = 1}, 2);
      auto b = reader.integer("b", "", {.atLeast = 1}, 2);
      if (b > a) reader.error("b", "larger than a", nullptr, {"a"_kj});
      return reader.section(
          "inner", "", [](Reader& inner) { return inner.integer("c", "", {}, 0); });
    });
    for (auto& error: diagnostics.all()) {
      if (error.message == "larger than a") return true;
    }
    return false;
  };
  CHECK(isReported("b = 3\n"));
  CHECK(isReported("a = 2\nb = 3\nc = 5\n"));
  CHECK(!isReported("a = 0\nb = 3\n"));
  CHECK(!isReported("aa = 5\nb = 3\n"));
  // An error in a table inside does not suppress the check.
  CHECK(isReported("b = 3\n[inner]\nc = 'x'\n"));
}

TEST_CASE("Reader: a value is right if it contains no error") {
  Diagnostics diagnostics;
  auto document = parse("x.toml", "[good]\na = 1\n[wrong]\na = 'x'\n[odd]\nb = 1\n", diagnostics);
  Reading reading{diagnostics, {}};
  readDocument(*document, reading, [](Reader& reader) {
    for (auto key: {"good", "wrong", "odd"}) {
      reader.section(key, "", [](Reader& inner) { return inner.integer("a", "", {}, 0); });
    }
    CHECK(reader.isRight("good"));
    CHECK(!reader.isRight("wrong"));
    CHECK(!reader.isRight("odd"));
    CHECK(reader.isRight("good.a"));
    CHECK(!reader.isRight("wrong.a"));
    CHECK(reader.isRight("absent"));
    return true;
  });
}

TEST_CASE("Reader: a check across keys reports nothing about a key that a syntax error may hide") {
  Diagnostics diagnostics;
  auto document = parse("x.toml", "b = \n", diagnostics);
  Reading reading{diagnostics, {}};
  readDocument(*document, reading, [](Reader& reader) {
    reader.error("b", "a or b is needed");
    return true;
  });
  CHECK(diagnostics.count() == 1);
}

TEST_CASE("Reader: after a syntax error no key is reported as missing") {
  CHECK(errorsOf("name =\n") == R"(x.toml:1:7: error: a value is missing here
  1 | name =
    |       ^
1 error in x.toml; nothing was started.
)");
}

TEST_CASE("Reader: a value that was reported as unreadable is not reported again") {
  CHECK(errorsOf("name = 2024-01-01\ndata.dataset = \"raw\"\n") ==
        R"(x.toml:1:8: error: an experiment file cannot contain dates and times
  1 | name = 2024-01-01
    |        ^^^^^^^^^^
  help: if it is a name, write it in quotes
1 error in x.toml; nothing was started.
)");
}

}  // namespace
}  // namespace configs
