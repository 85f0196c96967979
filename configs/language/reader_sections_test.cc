// Lists of tables, and tables whose keys the user chooses.
#include <doctest/doctest.h>

#include "configs/language/reader.h"

namespace configs {
namespace {

struct Row {
  int64_t epoch;
  kj::String where;
};

struct Read {
  kj::Vector<Row> rows;
  kj::String errors;
  kj::String resolved;
};

Read read(kj::StringPtr text) {
  Diagnostics diagnostics;
  auto document = parse("x.toml", text, diagnostics);
  Reading reading{diagnostics, {}};
  Read result;
  readDocument(*document, reading, [&](Reader& reader) {
    auto rows = reader.sections("rows", "Figures.", [](Reader& section) {
      Row row;
      row.epoch = section.integer("epoch", "From 1.", {.atLeast = 1});
      auto entries = KJ_MAP(entry, section.entries("where", "Of which runs.")) {
        return kj::str(entry.key, "=", print(*entry.value));
      };
      row.where = kj::strArray(entries, " ");
      return row;
    });
    for (auto& row: rows) result.rows.add(kj::mv(row));
    return 0;
  });
  result.errors = diagnostics.format("x.toml");
  result.resolved = print(reading.resolved);
  return result;
}

TEST_CASE("Reader: reads a list of tables one by one, also with keys of the user's choice") {
  auto good = read(R"(rows = [{ epoch = 1, where = { "a.b" = 2, c = "d" } }, { epoch = 2 }]
)");
  CHECK(good.errors == "");
  REQUIRE(good.rows.size() == 2);
  CHECK(good.rows[0].epoch == 1);
  CHECK(good.rows[0].where == "a.b=2 c=\"d\"");
  CHECK(good.rows[1].where == "");
  CHECK(good.resolved == R"(rows = [
  { epoch = 1, where = { "a.b" = 2, c = "d" } },
  { epoch = 2 },
]
)");
}

TEST_CASE("Reader: reports mistakes in a list of tables at their places") {
  CHECK(read(R"(rows = [{ epoch = 0 }, 5, { epoch = 1, were = 1, where = 3 }]
)")
            .errors == R"(x.toml:1:19: error: `epoch` must be an integer ≥ 1, not 0
  1 | rows = [{ epoch = 0 }, 5, { epoch = 1, were = 1, where = 3 }]
    |                   ^
x.toml:1:24: error: `rows[1]` must be a table, not an integer
  1 | rows = [{ epoch = 0 }, 5, { epoch = 1, were = 1, where = 3 }]
    |                        ^
x.toml:1:40: error: unknown key `were` in [rows[2]]
  1 | rows = [{ epoch = 0 }, 5, { epoch = 1, were = 1, where = 3 }]
    |                                        ^^^^
  help: did you mean `where`? (epoch, where)
x.toml:1:58: error: `where` must be a table, not an integer
  1 | rows = [{ epoch = 0 }, 5, { epoch = 1, were = 1, where = 3 }]
    |                                                          ^
  help: write `where = { "data.batch_size" = … }`
4 errors in x.toml; nothing was started.
)");
}

TEST_CASE("Reader: the reference has one section for a list of tables") {
  auto text = printReference("T", "", [](Reader& reader) {
    reader.sections("rows", "Figures.",
        [](Reader& section) { return section.integer("epoch", "From 1.", {.atLeast = 1}); });
    return 0;
  });
  CHECK(text == R"(# T

| key | type | default | meaning |
| --- | --- | --- | --- |
| `rows` | list of tables, see `[[rows]]` | `[]` | Figures. |

## `[[rows]]`

Figures.

| key | type | default | meaning |
| --- | --- | --- | --- |
| `epoch` | integer ≥ 1 | required | From 1. |
)");
}

}  // namespace
}  // namespace configs
