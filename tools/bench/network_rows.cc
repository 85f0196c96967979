#include "tools/bench/network_rows.h"

#include <kj/vector.h>

#include "runner/text/numbers.h"
#include "tools/bench/columns.h"
#include "tools/bench/kv_rows.h"

namespace tools {
namespace {

constexpr double BITS_PER_MBIT = 1e6;

template <typename Figure>
double middle(kj::ArrayPtr<const NetworkRound> rounds, Figure&& figure) {
  auto values = KJ_MAP(round, rounds) {
    return figure(round);
  };
  return medianOf(values);
}

kj::String milliseconds(double seconds) {
  return runner::fixedPoint(seconds * 1e3, 2);
}

kj::Array<kj::String> cellsOf(const NetworkRow& row) {
  return kj::arr(kj::str(row.mbit), runner::fixedPoint(row.raw_mbit, 1),
      runner::fixedPoint(row.bytes / 1e6, 3), milliseconds(row.network_s),
      milliseconds(row.exchange_s), milliseconds(row.overhead_s), milliseconds(row.compute_s),
      milliseconds(row.step_s), runner::fixedPoint(row.stepPerBound, 3),
      kj::str(runner::fixedPoint(100 / row.stepPerBound, 1), " %"));
}

}  // namespace

NetworkRow rowOf(uint mbit, kj::ArrayPtr<const NetworkRound> rounds) {
  return {.mbit = mbit,
      .raw_mbit =
          middle(rounds, [](auto& round) { return round.raw_bytes_per_s; }) * 8 / BITS_PER_MBIT,
      .bytes = middle(rounds, [](auto& round) { return round.bytes; }),
      .network_s = middle(rounds, [](auto& round) { return round.network_s(); }),
      .exchange_s = middle(rounds, [](auto& round) { return round.exchange_s; }),
      .compute_s = middle(rounds, [](auto& round) { return round.compute_s; }),
      .step_s = middle(rounds, [](auto& round) { return round.step_s; }),
      .stepPerBound = middle(rounds, [](auto& round) { return round.step_s / round.bound_s(); }),
      .overhead_s =
          middle(rounds, [](auto& round) { return round.exchange_s - round.network_s(); })};
}

kj::String textOf(kj::ArrayPtr<const NetworkRow> rows) {
  auto cells = KJ_MAP(row, rows) {
    return cellsOf(row);
  };
  auto header = kj::arr(kj::str("Mbit/s"), kj::str("raw Mbit/s"), kj::str("MB per step"),
      kj::str("network ms"), kj::str("exchange ms"), kj::str("overhead ms"), kj::str("compute ms"),
      kj::str("step ms"), kj::str("step / bound"), kj::str("share"));
  return inColumns({kj::mv(header), kj::mv(cells), nullptr}, 0);
}

kj::String jsonOf(kj::ArrayPtr<const NetworkRow> rows) {
  auto objects = KJ_MAP(row, rows) {
    return kj::str("{\"mbit_per_s\":", row.mbit, ",\"raw_mbit_per_s\":", row.raw_mbit,
        ",\"bytes\":", row.bytes, ",\"network_ms\":", row.network_s * 1e3,
        ",\"exchange_ms\":", row.exchange_s * 1e3, ",\"overhead_ms\":", row.overhead_s * 1e3,
        ",\"compute_ms\":", row.compute_s * 1e3, ",\"step_ms\":", row.step_s * 1e3,
        ",\"step_per_bound\":", row.stepPerBound, "}");
  };
  return kj::str("[", kj::strArray(objects, ",\n"), "]\n");
}

}  // namespace tools
