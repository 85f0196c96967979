#include "tools/bench/kv_rows.h"

#include <kj/debug.h>

#include <algorithm>

#include "runner/text/numbers.h"
#include "tools/bench/figures.h"

namespace tools {
namespace {

// Returns a figure with as many digits as are meaningful.
kj::String shown(double value) {
  return runner::fixedPoint(value, value < 10 ? 2 : value < 1000 ? 1 : 0);
}

// Returns the rate of one worker, in each direction.
double gigabytesPerS(const KvCase& kvCase, double us) {
  return double(kvCase.bytes()) / us / 1000;
}

// For a store, the last column is the ratio to its limit. For a peer, it is the ratio to the time
// of the first store.
kj::Array<kj::String> cellsOf(const KvRows& rows, const KvRow& row) {
  if (row.skipped.size() > 0) {
    return cells(row.name, kj::str("skipped: ", row.skipped), "", "", "", "", "", "");
  }
  auto& figures = row.figures;
  kj::String ratio, bestRatio, share;
  KJ_IF_MAYBE(index, row.other) {
    auto& other = rows.rows[*index].figures;
    double median = figures.ratioTo(other);
    ratio = shown(median);
    bestRatio = shown(figures.best_us() / other.best_us());
    share = kj::str(runner::fixedPoint(100 / median, 0), " %");
  }
  return cells(row.name, shown(figures.median_us()), shown(figures.best_us()),
      shown(gigabytesPerS(rows.kvCase, figures.median_us())),
      figures.used_us().map(shown).orDefault(kj::String()), ratio, bestRatio, share);
}

}  // namespace

void KvFigures::block(KvSide& side, uint64_t trips, bool counts) {
  uint64_t before = side.used_ns();
  auto times = side.trips(trips);
  uint64_t used = side.used_ns() - before;
  auto block = KJ_MAP(time, times) {
    return double(time) / 1000;
  };
  last_us = medianOf(block);
  isTimeKnown = !side.hasOthers;
  if (!counts) return;
  times_us.addAll(block);
  medians_us.add(last_us);
  used_ns += used;
}

double KvFigures::median_us() const {
  return medianOf(times_us);
}

kj::Maybe<double> KvFigures::used_us() const {
  if (!isTimeKnown) return nullptr;
  return double(used_ns) / double(times_us.size()) / 1000;
}

double KvFigures::best_us() const {
  return *std::min_element(times_us.begin(), times_us.end());
}

double KvFigures::ratioTo(const KvFigures& other) const {
  KJ_REQUIRE(medians_us.size() == other.medians_us.size());
  auto ratios = KJ_MAP(i, kj::indices(medians_us)) {
    return medians_us[i] / other.medians_us[i];
  };
  return medianOf(ratios);
}

kj::String textOf(const KvRows& rows) {
  auto& kvCase = rows.kvCase;
  auto shownRows = KJ_MAP(row, rows.rows) {
    return cellsOf(rows, row);
  };
  auto header = cells("what", "median µs", "best µs", "GB/s", "CPU µs", "ratio", "best", "speed");
  return kj::str("\n", kvCase.key_bytes, " bytes × ", kvCase.keys,
      kvCase.keys == 1 ? " key" : " keys", ", workers × servers: ", kvCase.workers, " × ",
      kvCase.servers, "\n", inColumns({kj::mv(header), kj::mv(shownRows), nullptr}, 1));
}

kj::String jsonOf(const KvRows& rows) {
  auto& kvCase = rows.kvCase;
  auto objects = KJ_MAP(row, rows.rows) {
    Json json;
    json.addText("name", row.name);
    json.add("key_bytes", kvCase.key_bytes);
    json.add("keys", kvCase.keys);
    json.add("workers", kvCase.workers);
    json.add("servers", kvCase.servers);
    if (row.skipped.size() > 0) {
      json.addText("skipped", row.skipped);
      return json.object();
    }
    auto& figures = row.figures;
    json.add("trips", figures.trips());
    json.add("median_us", figures.median_us());
    json.add("best_us", figures.best_us());
    json.add("gigabytes_per_s", gigabytesPerS(kvCase, figures.median_us()));
    KJ_IF_MAYBE(used, figures.used_us()) json.add("cpu_us", *used);
    KJ_IF_MAYBE(index, row.other) {
      auto& other = rows.rows[*index];
      json.addText("other", other.name);
      json.add("ratio", figures.ratioTo(other.figures));
      json.add("best_ratio", figures.best_us() / other.figures.best_us());
    }
    return json.object();
  };
  return kj::strArray(objects, ",\n");
}

}  // namespace tools
