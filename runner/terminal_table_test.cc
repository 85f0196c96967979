#include "runner/terminal_table.h"

#include <doctest/doctest.h>

#include "configs/language/display_width.h"

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

TEST_CASE("fittedTable: columns are aligned, numbers at the right, and empty columns left out") {
  CHECK(fittedTable(table(), nullptr, 80) ==
        "role       transport  calls  wait\n"
        "worker 0   tcp            5  1.50\n"
        "server 10  tcp, unix   1234  0.25\n");
}

TEST_CASE("fittedTable: the important columns stay, in the order of the table") {
  kj::StringPtr important[] = {"role"_kj, "wait"_kj};
  CHECK(fittedTable(table(), important, 20) ==
        "role       wait\n"
        "worker 0   1.50\n"
        "server 10  0.25\n");
  // `transport` has no room, `calls` has.
  CHECK(fittedTable(table(), important, 25) ==
        "role       calls  wait\n"
        "worker 0       5  1.50\n"
        "server 10   1234  0.25\n");
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

TEST_CASE("fittedTable: a cell holds no control characters and is one line") {
  TextTable odd{cells({"a", "b"}), nullptr, nullptr};
  odd.rows = kj::heapArray<kj::Array<kj::String>>(1);
  odd.rows[0] = cells({"x\ny\x1b[", "ä"});
  CHECK(fittedTable(odd, nullptr, 80) == "a      b\nx y [  ä\n");
}

}  // namespace
}  // namespace runner
