#include "tools/logs/epoch_log_table.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>

#include <cmath>

#include "configs/language/failure.h"
#include "runner/text/numbers.h"
#include "tools/logs/epoch_lines.h"
#include "tools/logs/line_text.h"
#include "tools/logs/log_runs.h"

namespace tools {
namespace {

using Names = kj::ArrayPtr<const kj::String>;

// Returns the index of a line's metric among `metrics`, or null.
kj::Maybe<size_t> placeOf(kj::ArrayPtr<const char> metric, Names metrics) {
  for (size_t i: kj::indices(metrics)) {
    if (isCalled(metric, metrics[i])) return i;
  }
  return nullptr;
}

// The figures of one cell, one per worker.
class Figures {
public:
  void add(double value) {
    sum += value;
    greatest = count == 0 ? value : std::fmax(greatest, value);
    ++count;
  }

  kj::Maybe<double> combine(Combine how) const {
    if (count == 0) return nullptr;
    return how == Combine::MAX ? greatest : sum / count;
  }

private:
  double sum = 0;
  double greatest = 0;
  uint count = 0;
};

// Records which of the requested metrics a log has, and the names of its first few metrics.
class KnownMetrics {
public:
  explicit KnownMetrics(Names wanted): wanted(wanted), isThere(kj::heapArray<bool>(wanted.size())) {
    for (auto& is: isThere) is = false;
  }

  // Returns the index of `metric` among the requested ones, or null.
  kj::Maybe<size_t> add(kj::ArrayPtr<const char> metric) {
    bool isNew = names.size() < NAMES_MAX;
    for (auto& name: names) isNew = isNew && name != metric;
    if (isNew) names.add(metric);
    auto place = placeOf(metric, wanted);
    KJ_IF_MAYBE(p, place) isThere[*p] = true;
    return place;
  }

  // Throws unless the log `file` has each of the requested metrics. With `isDefault`, they are only
  // the defaults, and a log without any metric is accepted.
  void requireAll(kj::StringPtr file, bool isDefault) const {
    if (names.empty() && isDefault) return;
    for (size_t i: kj::indices(wanted)) {
      if (isThere[i]) continue;
      if (names.empty()) {
        configs::fail(file, " has no metric ", wanted[i], ": its epoch lines have only times.");
      }
      configs::fail(file, " has no metric ", wanted[i], ". It has ", kj::strArray(names, ", "),
          ": choose with --metric-names ", kj::strArray(names, ","), ".");
    }
  }

private:
  static constexpr size_t NAMES_MAX = 10;  // as many as fit into a message

  Names wanted;
  kj::Array<bool> isThere;
  kj::Vector<kj::ArrayPtr<const char>> names;
};

struct Epoch {
  struct Metric {
    Figures train;
    Figures validation;
  };
  kj::Array<Metric> metrics;
  Figures topK;
  Figures time;
};

using Epochs = kj::TreeMap<uint, Epoch>;

// Returns `epochs 1 to 5`, or a list if some in between are missing.
kj::String describe(const Epochs& epochs) {
  constexpr size_t LISTED_MAX = 10;
  kj::Vector<uint> all;
  for (auto& entry: epochs) all.add(entry.key + 1);
  if (all.size() == 1) return kj::str("only epoch ", all[0]);
  bool whole = all.back() - all.front() + 1 == all.size();
  if (!whole && all.size() <= LISTED_MAX) return kj::str("epochs ", kj::strArray(all, ", "));
  return kj::str(whole ? "" : "some of the ", "epochs ", all.front(), " to ", all.back());
}

// Returns one sentence with the requested epochs that the log `name` does not have. Empty if it has
// all.
kj::String absentEpochs(const Epochs& epochs, kj::StringPtr name, kj::ArrayPtr<const uint> wanted) {
  kj::Vector<uint> absent;
  for (uint epoch: wanted) {
    if (epochs.find(epoch - 1) == nullptr) absent.add(epoch);
  }
  if (absent.empty()) return nullptr;
  return kj::str(
      name, " has no epoch ", kj::strArray(absent, ", "), ": it has ", describe(epochs), ".");
}

bool isWanted(uint epoch, const TableOptions& options) {
  if (epoch % options.every != 0) return false;
  if (options.epochs.size() == 0) return true;
  for (uint wanted: options.epochs) {
    if (wanted == epoch) return true;
  }
  return false;
}

// Returns the k of a metric `top_k_accuracy_<k>`. 0 for all other metrics.
uint topKOf(kj::ArrayPtr<const char> metric) {
  if (!take(metric, "top_k_accuracy_")) return 0;
  KJ_IF_MAYBE(k, takeCount(metric)) {
    if (metric.size() == 0) return *k;
  }
  return 0;
}

kj::Array<kj::String> metricsOf(const TableOptions& options) {
  if (options.metrics.size() == 0) return kj::arr(kj::str("accuracy"));
  return KJ_MAP(metric, options.metrics) {
    return kj::str(metric);
  };
}

}  // namespace

EpochLogTable readEpochLogTable(
    kj::ArrayPtr<const char> log, kj::StringPtr name, const TableOptions& options) {
  return epochLogTable(readLogLines(log), name, options);
}

EpochLogTable epochLogTable(
    kj::ArrayPtr<const LogLine> all, kj::StringPtr name, const TableOptions& options) {
  KJ_REQUIRE(options.every > 0, "`every` must be at least 1");
  kj::Vector<LogLine> lines;
  for (auto& line: all) {
    if (line.kind != LogLineKind::SPEED) lines.add(line);
  }
  if (lines.empty()) {
    configs::fail("no epoch lines found in ", name,
        ": a table is made of lines such as `Epoch[0] Train-accuracy=0.345109`.");
  }

  auto wanted = metricsOf(options);
  bool isDefault = options.metrics.size() == 0;
  uint topK = 0;
  Epochs epochs;
  KnownMetrics known(wanted);
  for (auto& line: chooseRun(lines, name, wanted, options.run, options.otherRuns)) {
    auto& epoch = epochs.findOrCreate(line.epoch, [&]() {
      return Epochs::Entry{line.epoch, Epoch{kj::heapArray<Epoch::Metric>(wanted.size()), {}, {}}};
    });
    if (line.kind == LogLineKind::TIME) {
      epoch.time.add(line.value);
      continue;
    }
    KJ_IF_MAYBE(place, known.add(line.metric)) {
      auto& metric = epoch.metrics[*place];
      (line.kind == LogLineKind::TRAIN ? metric.train : metric.validation).add(line.value);
      continue;
    }
    if (!isDefault || line.kind != LogLineKind::VALIDATION) continue;
    uint k = topKOf(line.metric);
    if (topK == 0) topK = k;
    if (k > 0 && k == topK) epoch.topK.add(line.value);
  }
  known.requireAll(name, isDefault);

  kj::Vector<runner::ResultRow> rows;
  Figures later;
  bool first = true;
  for (auto& entry: epochs) {
    auto time_s = entry.value.time.combine(Combine::MEAN);
    KJ_IF_MAYBE(t, time_s) {
      if (!first) later.add(*t);
    }
    first = false;
    if (!isWanted(entry.key + 1, options)) continue;
    auto metrics = KJ_MAP(metric, entry.value.metrics) {
      return runner::MetricFigures{
          metric.train.combine(options.combine), metric.validation.combine(options.combine)};
    };
    rows.add(runner::ResultRow{
        entry.key + 1, kj::mv(metrics), time_s, entry.value.topK.combine(options.combine)});
  }
  auto absent = absentEpochs(epochs, name, options.epochs);
  if (rows.empty()) {
    if (absent.size() > 0) configs::fail(absent);
    configs::fail(name, " has no epoch that is a multiple of ", options.every, ": it has ",
        describe(epochs), ".");
  }
  return {
      {rows.releaseAsArray(), kj::mv(wanted), topK}, later.combine(Combine::MEAN), kj::mv(absent)};
}

runner::TextTable pageTable(const runner::TextTable& table, kj::StringPtr file) {
  kj::String names[] = {kj::str("epoch"), kj::str("train-accuracy"), kj::str("valid-accuracy")};
  auto page = runner::selectColumns(table, file, names);
  for (auto& title: page.header) {
    for (auto& c: title.asArray()) {
      if (c == '-') c = ' ';
    }
  }
  for (auto& row: page.rows) {
    if (row[0].startsWith(" ")) row[0] = kj::str(row[0].slice(1));
  }
  return page;
}

kj::String epochTimes(const EpochLogTable& table) {
  KJ_IF_MAYBE(seconds, table.laterEpochs_s) {
    return kj::str(
        "Mean epoch time after the first epoch: ", runner::fixedPoint(*seconds, 2), " s");
  }
  return kj::str("Mean epoch time after the first epoch: unknown");
}

}  // namespace tools
