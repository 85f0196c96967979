#include "runner/result_table.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>

#include <cmath>

#include "configs/language/failure.h"
#include "runner/log_lines.h"

namespace runner {
namespace {

constexpr kj::StringPtr METRIC = "accuracy"_kj;

// Whether a table has a column for what `line` says.
bool countsForTable(const LogLine& line) {
  return line.kind == LogLineKind::TIME || line.metric == METRIC.asArray();
}

// Where a run gives way to the next in one file: its last line and the line that cannot belong to
// it.
struct Seam {
  const LogLine* before;
  const LogLine* after;

  // Place of `after` among the recognised lines.
  size_t index;
};

// Walks through the lines of one run and tells when another begins.
class RunWatch {
public:
  // The earlier line that shows `line` to be of another run, or null; `line` then counts as seen.
  const LogLine* follow(const LogLine& line) {
    auto conflict = findConflict(line);
    if (conflict != nullptr) {
      // The other nodes too are in the new run from here on.
      newest = {};
      lateUnranked = nullptr;
    }
    KJ_IF_MAYBE(rank, line.rank) {
      auto& said = newest.findOrCreate(*rank, [&]() { return decltype(newest)::Entry{*rank, {}}; });
      if (!said.empty() && said.back()->epoch != line.epoch) said.clear();
      if (said.empty() || countsForTable(line)) said.add(&line);
    } else if (line.epoch >= 2) {
      lateUnranked = &line;
    }
    return conflict;
  }

private:
  // What each node has said of its newest epoch: few lines, however many metrics there are.
  kj::HashMap<uint, kj::Vector<const LogLine*>> newest;

  // The last line without a node and of epoch 2 or later. Workers that cannot be told apart may be
  // an epoch apart (one still validates while another trains), but not two.
  const LogLine* lateUnranked = nullptr;

  const LogLine* findConflict(const LogLine& line) {
    KJ_IF_MAYBE(rank, line.rank) {
      KJ_IF_MAYBE(said, newest.find(*rank)) {
        if (line.epoch < said->back()->epoch) return said->back();
        if (!countsForTable(line)) return nullptr;
        for (auto earlier: *said) {
          bool again = earlier->epoch == line.epoch && earlier->kind == line.kind &&
                       earlier->metric == line.metric;
          if (again) return earlier;
        }
      }
      return nullptr;
    }
    return line.epoch == 0 ? lateUnranked : nullptr;
  }
};

kj::Vector<Seam> findSeams(kj::ArrayPtr<const LogLine> lines) {
  kj::Vector<Seam> seams;
  RunWatch watch;
  for (size_t i: kj::indices(lines)) {
    auto conflict = watch.follow(lines[i]);
    if (conflict != nullptr) seams.add(Seam{conflict, &lines[i], i});
  }
  return seams;
}

kj::String describe(const LogLine& line) {
  KJ_IF_MAYBE(rank, line.rank) {
    return kj::str("Node[", *rank, "] Epoch[", line.epoch, "]");
  }
  return kj::str("Epoch[", line.epoch, "]");
}

// The lines of the run that `wanted` (from 1) names, or of the only one.
kj::ArrayPtr<const LogLine> chooseRun(
    kj::ArrayPtr<const LogLine> lines, kj::StringPtr name, kj::Maybe<uint> wanted) {
  auto seams = findSeams(lines);
  size_t runs = seams.size() + 1;
  KJ_IF_MAYBE(run, wanted) {
    if (*run < 1 || *run > runs) {
      configs::fail(name, " holds ", runs, runs == 1 ? " run" : " runs", ": there is no run ", *run,
          "; runs count from 1.");
    }
    size_t begin = *run == 1 ? 0 : seams[*run - 2].index;
    size_t end = *run == runs ? lines.size() : seams[*run - 1].index;
    return lines.slice(begin, end);
  }
  if (runs > 1) {
    auto& seam = seams[0];
    configs::fail(name, " holds ", runs, " runs: line ", seam.before->number, " is ",
        describe(*seam.before), ", and line ", seam.after->number, " is ", describe(*seam.after),
        " again; choose one with --run 1 to --run ", runs, ".");
  }
  return lines;
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

// The metrics of a log, the first few of them.
class Metrics {
public:
  void add(kj::ArrayPtr<const char> metric) {
    accuracy = accuracy || metric == METRIC.asArray();
    for (auto& name: names) {
      if (name == metric) return;
    }
    if (names.size() < NAMES_MAX) names.add(metric);
  }

  // None if accuracy is one of them.
  kj::Array<kj::String> others() const {
    if (accuracy) return nullptr;
    return KJ_MAP(name, names) {
      return kj::str(name);
    };
  }

private:
  static constexpr size_t NAMES_MAX = 10;  // as many as a message can tell

  kj::Vector<kj::ArrayPtr<const char>> names;
  bool accuracy = false;
};

struct Epoch {
  Figures train;
  Figures validation;
  Figures time;
};

bool isWanted(uint epoch, const TableOptions& options) {
  if (epoch % options.every != 0) return false;
  if (options.epochs.size() == 0) return true;
  for (uint wanted: options.epochs) {
    if (wanted == epoch) return true;
  }
  return false;
}

// The figure as text, or nothing.
kj::String cell(kj::Maybe<double> value, uint decimals) {
  KJ_IF_MAYBE(v, value) {
    return figureText(*v, decimals);
  }
  return nullptr;
}

}  // namespace

ResultTable readResultTable(
    kj::ArrayPtr<const char> log, kj::StringPtr name, const TableOptions& options) {
  KJ_REQUIRE(options.every > 0, "every 0th epoch is none");
  kj::Vector<LogLine> lines;
  for (auto& line: readLogLines(log)) {
    if (line.kind != LogLineKind::SPEED) lines.add(line);
  }
  if (lines.empty()) {
    configs::fail("no epoch lines found in ", name,
        ": a table is made of lines such as `Epoch[0] Train-accuracy=0.345109`.");
  }

  kj::TreeMap<uint, Epoch> epochs;
  Metrics metrics;
  for (auto& line: chooseRun(lines, name, options.run)) {
    auto& epoch = epochs.findOrCreate(line.epoch, [&]() {
      return kj::TreeMap<uint, Epoch>::Entry{line.epoch, {}};
    });
    if (line.kind == LogLineKind::TIME) {
      epoch.time.add(line.value);
      continue;
    }
    metrics.add(line.metric);
    if (line.metric == METRIC.asArray()) {
      (line.kind == LogLineKind::TRAIN ? epoch.train : epoch.validation).add(line.value);
    }
  }

  kj::Vector<ResultRow> rows;
  Figures later;
  bool first = true;
  for (auto& entry: epochs) {
    auto time_s = entry.value.time.combine(Combine::MEAN);
    KJ_IF_MAYBE(t, time_s) {
      if (!first) later.add(*t);
    }
    first = false;
    if (!isWanted(entry.key + 1, options)) continue;
    auto& epoch = entry.value;
    rows.add(ResultRow{entry.key + 1, epoch.train.combine(options.combine),
        epoch.validation.combine(options.combine), time_s});
  }
  return ResultTable{rows.releaseAsArray(), later.combine(Combine::MEAN), metrics.others()};
}

TextTable textOf(const ResultTable& table) {
  auto header = kj::arr(
      kj::str("epoch"), kj::str("train-accuracy"), kj::str("valid-accuracy"), kj::str("time"));
  auto rows = KJ_MAP(row, table.rows) {
    return kj::arr(kj::str(row.epoch < 10 ? " " : "", row.epoch), cell(row.train, 6),
        cell(row.validation, 6), cell(row.time_s, 1));
  };
  return {kj::mv(header), kj::mv(rows), nullptr};
}

TextTable pageTable(const TextTable& table, kj::StringPtr file) {
  kj::String names[] = {kj::str("epoch"), kj::str("train-accuracy"), kj::str("valid-accuracy")};
  auto page = selectColumns(table, file, names);
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

kj::String epochTimes(const ResultTable& table) {
  KJ_IF_MAYBE(seconds, table.laterEpochs_s) {
    return kj::str("Mean epoch time after the first epoch: ", fixedPoint(*seconds, 2), " s");
  }
  return kj::str("Mean epoch time after the first epoch: none is known");
}

kj::String formatTable(const ResultTable& table, TableFormat format) {
  return formatTable(textOf(table), format);
}

}  // namespace runner
