#include "tools/logs/speed_table.h"

#include <kj/map.h>
#include <kj/vector.h>

#include <cmath>

#include "runner/text/numbers.h"

namespace tools {

SpeedTable speedTable(kj::ArrayPtr<const LogLine> lines) {
  // Sorts after every rank, because a rank has at most nine digits.
  constexpr uint NO_RANK = kj::maxValue;
  kj::TreeMap<uint, SpeedRow> rows;
  SpeedTable table;
  for (auto& line: lines) {
    if (line.kind != LogLineKind::SPEED) continue;
    if (!std::isfinite(line.value)) {
      table.withoutSpeed++;
      continue;
    }
    auto& row = rows.findOrCreate(line.rank.orDefault(NO_RANK), [&]() {
      return kj::TreeMap<uint, SpeedRow>::Entry{
          line.rank.orDefault(NO_RANK), {line.rank, 0, line.value, line.value, 0}};
    });
    row.mean += line.value;  // the sum until all lines are read
    row.least = kj::min(row.least, line.value);
    row.most = kj::max(row.most, line.value);
    row.count++;
  }
  kj::Vector<SpeedRow> result;
  for (auto& entry: rows) {
    entry.value.mean /= entry.value.count;
    result.add(entry.value);
  }
  table.rows = result.releaseAsArray();
  return table;
}

runner::TextTable textOf(const SpeedTable& table) {
  auto header = kj::arr(kj::str("worker"), kj::str("images/s"), kj::str("minimum"),
      kj::str("maximum"), kj::str("count"));
  auto rows = KJ_MAP(row, table.rows) {
    kj::String worker = kj::str("all");
    KJ_IF_MAYBE(rank, row.rank) worker = kj::str(*rank);
    return kj::arr(kj::mv(worker), runner::figureText(row.mean, 2),
        runner::figureText(row.least, 2), runner::figureText(row.most, 2), kj::str(row.count));
  };
  return {kj::mv(header), kj::mv(rows), nullptr};
}

}  // namespace tools
