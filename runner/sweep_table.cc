#include "runner/sweep_table.h"

#include <kj/vector.h>

#include "runner/log_lines.h"
#include "runner/reported_run.h"

namespace runner {

namespace {

kj::String cell(kj::Maybe<double> value, uint decimals) {
  KJ_IF_MAYBE(v, value) return fixedPoint(*v, decimals);
  return kj::str("-");
}

// A line end or a bar would break the row.
kj::String escaped(kj::StringPtr text) {
  kj::Vector<char> result;
  for (char c: text) {
    if (c == '|') result.add('\\');
    result.add(c == '\n' ? ' ' : c);
  }
  return kj::heapString(result);
}

kj::String line(kj::ArrayPtr<const kj::String> cells) {
  return kj::str("| ", kj::strArray(cells, " | "), " |\n");
}

}  // namespace

kj::String stateText(const RunRecord& record) {
  switch (record.state) {
    case RunRecord::FINISHED:
      return kj::str("finished");
    case RunRecord::FAILED:
      return kj::str("failed: ", record.reason);
    case RunRecord::STOPPED:
      return kj::str("stopped: ", record.reason);
    case RunRecord::UNFINISHED:
      return kj::str("unfinished");
  }
  KJ_UNREACHABLE;
}

kj::String formatSweepTable(
    kj::ArrayPtr<const kj::String> shortKeys, kj::ArrayPtr<const SweepRow> rows) {
  kj::Vector<kj::String> lines;
  kj::Vector<kj::String> head;
  for (auto& key: shortKeys) head.add(escaped(key));
  for (auto column: {"epochs", "train-accuracy", "valid-accuracy", "time", "state"}) {
    head.add(kj::str(column));
  }
  lines.add(line(head));
  auto dashes = KJ_MAP(column, head) {
    return kj::str("---");
  };
  lines.add(line(dashes));
  for (auto& row: rows) {
    kj::Vector<kj::String> cells;
    for (auto& setting: row.settings) cells.add(escaped(setting.name));
    auto& epochs = row.record.epochRecords;
    cells.add(kj::str(epochs.size()));
    if (epochs.size() > 0) {
      cells.add(cell(epochs.back().trainAccuracy, 6));
      cells.add(cell(epochs.back().validationAccuracy, 6));
    } else {
      cells.add(cell(nullptr, 6));
      cells.add(cell(nullptr, 6));
    }
    cells.add(cell(meanEpoch_s(row.record), 1));
    cells.add(escaped(stateText(row.record)));
    lines.add(line(cells));
  }
  return kj::strArray(lines, "");
}

}  // namespace runner
