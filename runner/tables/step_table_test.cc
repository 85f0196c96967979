#include "runner/tables/step_table.h"

#include <doctest/doctest.h>

#include "tests/text.h"

namespace runner {
namespace {

StepRow rowOf(uint step) {
  StepRow row;
  row.step = step;
  row.globalStep = step;
  return row;
}

// Returns the rows alone, as CSV.
kj::String rows(const StepTable& table) {
  auto text = formatTable(textOf(table), TableFormat::CSV);
  kj::StringPtr head = "step,global step,loss,accuracy,s/batch\n";
  REQUIRE(text.startsWith(head));
  return kj::str(text.slice(head.size()));
}

TEST_CASE("thinned: keeps evenly spaced rows, with the first, the last and those of the end") {
  kj::Vector<StepRow> all;
  for (uint step = 1; step <= 45; step++) all.add(rowOf(step));
  StepRow end;
  end.globalStep = 45;
  end.loss = 7;
  end.end = true;
  all.add(end);
  StepTable table{all.releaseAsArray()};
  auto few = thinned(table, 20);
  CHECK(few.rows.size() == 21);
  CHECK(rows(few).startsWith("1,1,,,\n3,3,,,\n5,5,"));
  CHECK(rows(few).endsWith("\n42,42,,,\n45,45,,,\n,45,7,,\n"));
  CHECK(thinned(table, 2).rows.size() == 3);
  CHECK(rows(thinned(table, 45)) == rows(table));
  CHECK(thinned(StepTable{}, 20).rows.size() == 0);
}

}  // namespace
}  // namespace runner
