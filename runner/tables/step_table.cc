#include "runner/tables/step_table.h"

#include <kj/debug.h>
#include <kj/function.h>
#include <kj/map.h>
#include <kj/vector.h>

#include "runner/text/numbers.h"

namespace runner {
namespace {

// Makes the rows from the lines, in order.
class Rows {
public:
  void add(const StepLine& line) {
    if (line.end && line.style == StepStyle::SCHLAG) return addSchlagEnd(line);
    StepRow row;
    if (line.style == StepStyle::SCHLAG) {
      row.step = schlagStep(line);
    } else {
      row.step = line.step;
    }
    row.globalStep = line.globalStep;
    row.loss = line.loss;
    row.accuracy = line.accuracy;
    row.batch_s = line.style == StepStyle::TF_REPLICA ? sinceLast(line) : line.batch_s;
    row.end = line.end;
    rows.add(row);
  }

  kj::Array<StepRow> finish() { return rows.releaseAsArray(); }

private:
  // The worker's line before.
  struct Last {
    uint step;
    double moment_s;
  };

  struct Epoch {
    uint64_t begin;  // how many steps the epochs before have
    uint batches;
  };

  kj::Vector<StepRow> rows;
  kj::HashMap<uint, Last> lasts;
  kj::HashMap<uint, Epoch> epochs;
  kj::Vector<size_t> ends;  // indices of schlag's end rows
  size_t costs = 0;         // how many of them have their cost

  // A test accuracy begins a row. The final costs after it fill the rows in order, because those of
  // several workers may be mixed.
  void addSchlagEnd(const StepLine& line) {
    bool opens = line.accuracy != nullptr;
    if (opens || costs == ends.size()) {
      ends.add(rows.size());
      rows.add().end = true;
    }
    if (opens) {
      rows.back().accuracy = line.accuracy;
    } else {
      rows[ends[costs++]].loss = line.loss;
    }
  }

  // Epochs may have different numbers of batches.
  uint64_t schlagStep(const StepLine& line) {
    KJ_IF_MAYBE(epoch, epochs.find(line.epoch)) {
      return epoch->begin + line.batch;
    }
    // If the file does not have the epoch before, assumes that all epochs have as many batches as
    // this one.
    uint64_t begin = uint64_t(kj::max(line.epoch, 1u) - 1) * line.epochBatches;
    if (line.epoch > 1) {
      KJ_IF_MAYBE(before, epochs.find(line.epoch - 1)) {
        begin = before->begin + before->batches;
      }
    }
    epochs.insert(line.epoch, Epoch{begin, line.epochBatches});
    return begin + line.batch;
  }

  kj::Maybe<double> sinceLast(const StepLine& line) {
    kj::Maybe<double> result;
    KJ_IF_MAYBE(rank, line.rank) {
      KJ_IF_MAYBE(moment_s, line.moment_s) {
        uint step = KJ_ASSERT_NONNULL(line.step);
        KJ_IF_MAYBE(last, lasts.find(*rank)) {
          if (step > last->step) result = (*moment_s - last->moment_s) / (step - last->step);
        }
        lasts.upsert(*rank, Last{step, *moment_s}, [](Last& old, Last&& now) { old = now; });
      }
    }
    return result;
  }
};

// Returns the rows that `keep` accepts, and the rows of the end.
StepTable filtered(const StepTable& table, kj::FunctionParam<bool(const StepRow&)> keep) {
  kj::Vector<StepRow> rows;
  for (auto& row: table.rows) {
    if (row.end || keep(row)) rows.add(row);
  }
  return {rows.releaseAsArray(), table.style};
}

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

StepTable stepTable(kj::ArrayPtr<const StepLine> lines) {
  Rows rows;
  for (auto& line: lines) rows.add(line);
  StepTable table{rows.finish()};
  if (lines.size() > 0) table.style = lines[0].style;
  return table;
}

StepTable everyNth(const StepTable& table, uint every) {
  return filtered(table, [&](const StepRow& row) {
    KJ_IF_MAYBE(step, row.step) {
      return *step % every == 0;
    }
    return true;
  });
}

StepTable thinned(const StepTable& table, uint rowsMax) {
  size_t steps = 0;
  for (auto& row: table.rows) {
    if (!row.end) steps++;
  }
  KJ_REQUIRE(rowsMax >= 2, rowsMax);
  size_t shown = kj::min(steps, size_t(rowsMax));
  size_t i = 0, taken = 0;
  return filtered(table, [&](const StepRow&) {
    // Row number `taken` of the `shown` rows: 0 is the first, `shown` - 1 the last.
    size_t place = shown > 1 ? taken * (steps - 1) / (shown - 1) : 0;
    bool keeps = i++ == place && taken < shown;
    taken += keeps;
    return keeps;
  });
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
