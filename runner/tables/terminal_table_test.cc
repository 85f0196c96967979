#include "runner/tables/terminal_table.h"

#include <doctest/doctest.h>

#include <kj/debug.h>
#include <kj/vector.h>

#include "configs/language/display_width.h"
#include "tests/text.h"

namespace runner {
namespace {

kj::Array<kj::String> cells(std::initializer_list<kj::StringPtr> texts) {
  return KJ_MAP(text, kj::arrayPtr(texts.begin(), texts.size())) {
    return kj::str(text);
  };
}

TextTable table() {
  auto rows = kj::heapArray<kj::Array<kj::String>>(2);
  rows[0] = cells({"worker 0", "tcp", " 5", "", "1.50"});
  rows[1] = cells({"server 10", "tcp, unix", "1234", "", "0.25"});
  return {cells({"role", "transport", "calls", "dropped", "wait"}), kj::mv(rows), nullptr};
}

TEST_CASE("fittedTable: aligns columns, numbers at the right, and leaves out empty columns") {
  CHECK(fittedTable(table(), nullptr, 80) ==
        "role       transport  calls  wait\n"
        "worker 0   tcp            5  1.50\n"
        "server 10  tcp, unix   1234  0.25\n");
}

TEST_CASE("fittedTable: keeps the important columns, in the order of the table") {
  kj::StringPtr important[] = {"role"_kj, "wait"_kj};
  CHECK(fittedTable(table(), important, 20) ==
        "role       wait\n"
        "worker 0   1.50\n"
        "server 10  0.25\n");
  // `transport` has no room here. `calls` would have room, but would disappear at the width at
  // which `transport` fits.
  CHECK(fittedTable(table(), important, 25) == fittedTable(table(), important, 20));
}

// Returns the titles of the columns that a terminal of this width shows.
kj::Vector<kj::String> titlesAt(uint columns) {
  kj::StringPtr important[] = {"transport"_kj, "role"_kj};
  auto text = fittedTable(table(), important, columns);
  kj::Vector<kj::String> titles;
  for (auto title: {"role"_kj, "transport"_kj, "calls"_kj, "wait"_kj}) {
    auto header = text.slice(0, KJ_ASSERT_NONNULL(text.findFirst('\n')));
    if (tests::contains(kj::heapString(header), title)) titles.add(kj::str(title));
  }
  return titles;
}

TEST_CASE("fittedTable: a wider terminal shows the columns of a narrower one, and more") {
  for (uint columns = 18; columns < 60; columns++) {
    auto narrow = titlesAt(columns), wide = titlesAt(columns + 1);
    for (auto& title: narrow) {
      bool stays = false;
      for (auto& other: wide) stays = stays || other == title;
      INFO(title.cStr(), " at ", columns);
      CHECK(stays);
    }
  }
  CHECK(titlesAt(60).size() == 4);
}

TEST_CASE("fittedTable: shortened names stay different") {
  auto rows = kj::heapArray<kj::Array<kj::String>>(2);
  rows[0] = cells({"rate=0.1,seed=1,momentum=0.9", "0.5"});
  rows[1] = cells({"rate=0.1,seed=2,momentum=0.9", "0.6"});
  TextTable names{cells({"run", "accuracy"}), kj::mv(rows), nullptr};
  CHECK(fittedTable(names, nullptr, 30) ==
        "run              accuracy\n"
        "1 rate=0…um=0.9       0.5\n"
        "2 rate=0…um=0.9       0.6\n");
}

TEST_CASE("fittedTable: no line is wider than the terminal, however narrow that is") {
  for (uint columns = 1; columns < 40; columns++) {
    auto text = fittedTable(table(), nullptr, columns);
    for (kj::StringPtr rest = text; rest.size() > 0;) {
      size_t end = rest.findFirst('\n').orDefault(0);
      CHECK(configs::columnsOf(rest.slice(0, end)) <= columns);
      rest = rest.slice(end + 1);
    }
  }
}

TEST_CASE("fittedTable: a table without rows has its header") {
  TextTable empty{cells({"epoch", "time"}), nullptr, nullptr};
  CHECK(fittedTable(empty, nullptr, 80) == "epoch  time\n");
}

TEST_CASE("fittedTable: aligns wide characters") {
  TextTable wide{cells({"name", "n"}), nullptr, nullptr};
  wide.rows = kj::heapArray<kj::Array<kj::String>>(2);
  wide.rows[0] = cells({"学習率", "1"});
  wide.rows[1] = cells({"rate", "2"});
  CHECK(fittedTable(wide, nullptr, 80) == "name    n\n学習率  1\nrate    2\n");
}

TEST_CASE("fittedTable: a cell holds no control characters and is one line") {
  TextTable odd{cells({"a", "b"}), nullptr, nullptr};
  odd.rows = kj::heapArray<kj::Array<kj::String>>(1);
  odd.rows[0] = cells({"x\ny\x1b[\xc2\x9b.", "ä"});
  CHECK(fittedTable(odd, nullptr, 80) == "a        b\nx y [ .  ä\n");
}

}  // namespace
}  // namespace runner
