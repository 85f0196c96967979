#include "tools/bench/network_rows.h"

#include <kj/vector.h>

#include "runner/text/numbers.h"
#include "tools/bench/figures.h"

namespace tools {
namespace {

using runner::fixedPoint;

// A column of the table, and its key in JSON.
struct Figure {
  kj::StringPtr title;
  kj::StringPtr key;
  uint decimals;
  double unit;  // of the table; JSON has bytes and milliseconds
  double (*of)(const NetworkRound& round);
};

using Round = const NetworkRound&;

constexpr Figure FIGURES[] = {
    {"raw Mbit/s"_kj, "raw_mbit_per_s"_kj, 1, 1,
        [](Round r) { return r.raw_bytes_per_s * 8 / 1e6; }},
    {"MB per step"_kj, "bytes"_kj, 3, 1e6, [](Round r) { return r.bytes; }},
    {"network ms"_kj, "network_ms"_kj, 2, 1, [](Round r) { return r.network_s() * 1e3; }},
    {"exchange ms"_kj, "exchange_ms"_kj, 2, 1, [](Round r) { return r.exchange_s * 1e3; }},
    // The time of an exchange apart from its bytes. `runner explain` takes it as an argument.
    {"overhead ms"_kj, "overhead_ms"_kj, 2, 1,
        [](Round r) { return (r.exchange_s - r.network_s()) * 1e3; }},
    {"compute ms"_kj, "compute_ms"_kj, 2, 1, [](Round r) { return r.compute_s * 1e3; }},
    {"step ms"_kj, "step_ms"_kj, 2, 1, [](Round r) { return r.step_s * 1e3; }},
    {"step / bound"_kj, "step_per_bound"_kj, 3, 1, [](Round r) { return r.step_s / r.bound_s(); }},
};

}  // namespace

NetworkRow rowOf(uint mbit, kj::ArrayPtr<const NetworkRound> rounds) {
  kj::Vector<kj::String> cells;
  Json json;
  cells.add(kj::str(mbit));
  json.add("mbit_per_s", mbit);
  double median;
  for (auto& figure: FIGURES) {
    median = medianOf(KJ_MAP(round, rounds) { return figure.of(round); });
    cells.add(fixedPoint(median / figure.unit, figure.decimals));
    json.add(figure.key, median);
  }
  // The last figure is step / bound.
  cells.add(kj::str(fixedPoint(100 / median, 1), " %"));
  return {mbit, cells.releaseAsArray(), json.object()};
}

kj::String textOf(kj::Array<NetworkRow> rows) {
  kj::Vector<kj::String> header;
  header.add(kj::str("Mbit/s"));
  for (auto& figure: FIGURES) header.add(kj::str(figure.title));
  header.add(kj::str("share"));
  auto all = KJ_MAP(row, rows) {
    return kj::mv(row.cells);
  };
  return inColumns({header.releaseAsArray(), kj::mv(all), nullptr}, 0);
}

kj::String jsonOf(kj::ArrayPtr<const NetworkRow> rows) {
  auto objects = KJ_MAP(row, rows)->kj::StringPtr {
    return row.json;
  };
  return kj::str("[", kj::strArray(objects, ",\n"), "]\n");
}

}  // namespace tools
