#include "runner/tables/step_table.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>

#include "runner/text/numbers.h"

namespace runner {
namespace {

template <typename Count>
kj::String countCell(const kj::Maybe<Count>& count) {
  KJ_IF_MAYBE(c, count) {
    return kj::str(*c);
  }
  return nullptr;
}

kj::String cell(kj::Maybe<double> value, kj::String (*text)(double)) {
  KJ_IF_MAYBE(v, value) {
    return text(*v);
  }
  return nullptr;
}

}  // namespace

StepTable thinned(const StepTable& table, uint rowsMax) {
  size_t steps = 0;
  for (auto& row: table.rows) {
    if (!row.end) steps++;
  }
  KJ_REQUIRE(rowsMax >= 2, rowsMax);
  size_t shown = kj::min(steps, size_t(rowsMax));
  kj::Vector<StepRow> rows;
  size_t i = 0, taken = 0;
  for (auto& row: table.rows) {
    // Row number `taken` of the `shown` rows: 0 is the first, `shown` - 1 the last.
    size_t place = shown > 1 ? taken * (steps - 1) / (shown - 1) : 0;
    if (row.end) {
      rows.add(row);
    } else if (i++ == place && taken < shown) {
      rows.add(row);
      taken++;
    }
  }
  return {rows.releaseAsArray()};
}

TextTable textOf(const StepTable& table) {
  auto header = kj::arr(kj::str("step"), kj::str("global step"), kj::str("loss"),
      kj::str("accuracy"), kj::str("s/batch"));
  auto rows = KJ_MAP(row, table.rows) {
    return kj::arr(countCell(row.step), countCell(row.globalStep), cell(row.loss, sixDigits),
        cell(row.accuracy, sixDigits),
        cell(row.batch_s, [](double seconds) { return figureText(seconds, 6); }));
  };
  return {kj::mv(header), kj::mv(rows), nullptr};
}

}  // namespace runner
