#include "runner/tables/result_table.h"

#include <kj/map.h>
#include <kj/vector.h>

#include "runner/text/numbers.h"

namespace runner {

kj::String topKTitle(uint k) {
  return kj::str("valid-top-", k);
}

TextTable textOf(const ResultTable& table) {
  kj::Vector<kj::String> header;
  header.add(kj::str("epoch"));
  for (auto part: {"train-", "valid-"}) {
    for (auto& metric: table.metrics) header.add(kj::str(part, metric));
  }
  if (table.topK > 0) header.add(topKTitle(table.topK));
  header.add(kj::str("time"));
  auto rows = KJ_MAP(row, table.rows) {
    kj::Vector<kj::String> cells;
    cells.add(kj::str(row.epoch < 10 ? " " : "", row.epoch));
    for (auto figure: {&MetricFigures::train, &MetricFigures::validation}) {
      for (auto& metric: row.metrics) cells.add(figureCell(metric.*figure, 6));
    }
    if (table.topK > 0) cells.add(figureCell(row.topK, 6));
    cells.add(figureCell(row.time_s, 1));
    return cells.releaseAsArray();
  };
  return {header.releaseAsArray(), kj::mv(rows), nullptr};
}

}  // namespace runner
