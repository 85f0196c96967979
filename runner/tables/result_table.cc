#include "runner/tables/result_table.h"

#include <kj/map.h>
#include <kj/vector.h>

#include "runner/text/numbers.h"

namespace runner {

TextTable textOf(const ResultTable& table) {
  kj::Vector<kj::String> header;
  header.add(kj::str("epoch"));
  for (auto part: {"train-", "valid-"}) {
    for (auto& metric: table.metrics) header.add(kj::str(part, metric));
  }
  header.add(kj::str("time"));
  auto rows = KJ_MAP(row, table.rows) {
    kj::Vector<kj::String> cells;
    cells.add(kj::str(row.epoch < 10 ? " " : "", row.epoch));
    for (auto figure: {&MetricFigures::train, &MetricFigures::validation}) {
      for (auto& metric: row.metrics) cells.add(figureCell(metric.*figure, 6));
    }
    cells.add(figureCell(row.time_s, 1));
    return cells.releaseAsArray();
  };
  return {header.releaseAsArray(), kj::mv(rows), nullptr};
}

}  // namespace runner
