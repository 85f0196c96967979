#include "tools/logs/step_log_table.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>

namespace tools {
namespace {

using runner::StepRow;

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

}  // namespace

StepLogTable stepLogTable(kj::ArrayPtr<const StepLine> lines) {
  Rows rows;
  for (auto& line: lines) rows.add(line);
  StepLogTable table{{rows.finish()}};
  if (lines.size() > 0) table.style = lines[0].style;
  return table;
}

StepLogTable everyNth(const StepLogTable& table, uint every) {
  kj::Vector<StepRow> rows;
  for (auto& row: table.rows) {
    if (row.end || row.step.orDefault(0) % every == 0) rows.add(row);
  }
  return {{rows.releaseAsArray()}, table.style};
}

}  // namespace tools
