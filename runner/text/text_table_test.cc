#include "runner/text/text_table.h"

#include <doctest/doctest.h>
#include <kj/exception.h>

#include "tests/text.h"

namespace runner {
namespace {

TextTable table() {
  return {kj::arr(kj::str("epoch"), kj::str("global step")),
      kj::arr(kj::arr(kj::str(" 1"), kj::str("")), kj::arr(kj::str("10"), kj::str("a,b"))),
      nullptr};
}

TEST_CASE("formatTable: writes a table in three formats") {
  CHECK(formatTable(table(), TableFormat::MARKDOWN) ==
        "| epoch | global step |\n| --- | --- |\n|  1 |  |\n| 10 | a,b |\n");
  CHECK(formatTable(table(), TableFormat::NONE) == "epoch\tglobal step\n 1\t\n10\ta,b\n");
  CHECK(formatTable(table(), TableFormat::CSV) == "epoch,global step\n1,\n10,\"a,b\"\n");
}

TEST_CASE("formatTable: escapes characters that would end a cell in Markdown") {
  TextTable odd{kj::arr(kj::str("a|b")), kj::arr(kj::arr(kj::str("x | y\nz"))), nullptr};
  CHECK(formatTable(odd, TableFormat::MARKDOWN) == "| a\\|b |\n| --- |\n| x \\| y z |\n");
  CHECK(formatTable(odd, TableFormat::NONE) == "a|b\nx | y\nz\n");
}

TEST_CASE("figureCell: has the requested number of decimals, and is empty without a value") {
  CHECK(figureCell(0.5, 3) == "0.500");
  CHECK(figureCell(nullptr, 3) == "");
}

TEST_CASE("isOfNumbers: exponents and nan are numbers, and empty cells do not count") {
  CHECK(isOfNumbers(table(), 0));
  CHECK_FALSE(isOfNumbers(table(), 1));
  TextTable losses{kj::arr(kj::str("loss")),
      kj::arr(kj::arr(kj::str("1.76e32")), kj::arr(kj::str("nan")), kj::arr(kj::str("-0.5"))),
      nullptr};
  CHECK(isOfNumbers(losses, 0));
  losses.rows[0][0] = kj::str("e2");
  CHECK_FALSE(isOfNumbers(losses, 0));
  losses.rows = nullptr;
  CHECK_FALSE(isOfNumbers(losses, 0));
}

TEST_CASE("bytesCell: uses the largest unit that fits, with one decimal") {
  CHECK(bytesCell(1023) == "1023 bytes");
  CHECK(bytesCell(1536) == "1.5 KiB");
  CHECK(bytesCell(5.0 * (1 << 30)) == "5.0 GiB");
}

TEST_CASE("formatTable: writes the foot only below a Markdown table") {
  auto footed = table();
  footed.foot = kj::str("That was all.");
  CHECK(formatTable(footed, TableFormat::MARKDOWN) ==
        kj::str(formatTable(table(), TableFormat::MARKDOWN), "\nThat was all.\n"));
  CHECK(formatTable(footed, TableFormat::CSV) == formatTable(table(), TableFormat::CSV));
}

TEST_CASE("selectColumns: chooses columns by name, in any order") {
  kj::String names[] = {kj::str("global-step"), kj::str("epoch")};
  CHECK(formatTable(selectColumns(table(), "x.log", names), TableFormat::CSV) ==
        "global step,epoch\n,1\n\"a,b\",10\n");
  names[0] = kj::str("time");
  KJ_IF_MAYBE(exception,
      kj::runCatchingExceptions([&]() { selectColumns(table(), "x.log", names); })) {
    CHECK(
        exception->getDescription() == "x.log has no column `time`. It has epoch, global-step"_kj);
  } else {
    FAIL("an unknown column was found");
  }
}

TEST_CASE("formatTables: writes the name of each of several tables") {
  NamedTable tables[] = {{kj::str("a.log"), table()}, {kj::str("b \"2\".log"), table()}};
  CHECK(formatTables(tables, TableFormat::NONE) ==
        "a.log\nepoch\tglobal step\n 1\t\n10\ta,b\n\n"
        "b \"2\".log\nepoch\tglobal step\n 1\t\n10\ta,b\n");
  CHECK(formatTables(tables, TableFormat::CSV) ==
        "file,epoch,global step\na.log,1,\na.log,10,\"a,b\"\n\"b \"\"2\"\".log\",1,\n"
        "\"b \"\"2\"\".log\",10,\"a,b\"\n");
  CHECK(formatTables(nullptr, TableFormat::CSV) == "");
}

TEST_CASE("formatTables: tables with different columns cannot be one CSV table") {
  NamedTable tables[] = {{kj::str("a.log"), table()}, {kj::str("b.log"), table()}};
  tables[1].table.header[1] = kj::str("time");
  CHECK_THROWS(formatTables(tables, TableFormat::CSV));
  CHECK(formatTables(tables, TableFormat::NONE).size() > 0);
}

}  // namespace
}  // namespace runner
