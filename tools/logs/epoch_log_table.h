// tools/logs/epoch_log_table.h: makes a table of epochs from the text of a log.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

#include "runner/tables/result_table.h"
#include "tools/logs/epoch_lines.h"

namespace tools {

using kj::uint;

// How the workers' figures of one epoch are combined. The time is always the mean.
enum class Combine {
  MEAN,
  // The greatest figure. A nan counts only if all workers have it.
  MAX
};

// The epochs of a log in ascending order, over all workers.
struct EpochLogTable: public runner::ResultTable {
  // The mean time of all epochs after the first, including those without a row. The first is left
  // out because it includes costs that occur only once.
  kj::Maybe<double> laterEpochs_s;

  // One sentence with the requested epochs that the log does not have. Empty if it has all.
  kj::String absent;
};

// The requested rows and columns of a log's table.
struct TableOptions {
  Combine combine = Combine::MEAN;

  // Which run of the log, from 1. Null: the log must hold only one.
  kj::Maybe<uint> run;
  // The advice about a log with several runs if `run` is null. Empty: choose one with --run.
  kj::StringPtr otherRuns;

  // Only epochs (from 1) that are multiples of this number. Not 0.
  uint every = 1;

  // Only these epochs (from 1). Empty: all. Epochs that the log does not have make no row.
  kj::Array<uint> epochs;

  // The metrics that have columns. Upper and lower case count as the same. Empty: accuracy, and
  // the first `top_k_accuracy_<k>` of the validation lines, if there is one.
  kj::Array<kj::String> metrics;
};

// Makes the table of the log file `name` (used in messages), whose whole text is `log`. The log may
// be ours or MXNet's of any period (see epoch_lines.h). Uses the epoch lines of the requested
// metrics and the times, and combines the lines of all workers for one epoch.
//
// A second run begins if a node's epoch goes back, or if a node repeats a figure of the same epoch.
// Among lines without `Node[r]`, it begins if a line of epoch 0 follows one of epoch 2 or later.
// (Without nodes, short runs one after another look like workers of one run.)
//
// Throws FAILED if the log has no epoch lines, or fewer runs than `options.run`. Throws if it holds
// several runs and `options.run` is null; the message has both lines where they meet. Throws if it
// has metrics, but not every requested one; the message names them. Throws if no epoch is left to
// show. A log with only times has empty columns for accuracy.
EpochLogTable readEpochLogTable(
    kj::ArrayPtr<const char> log, kj::StringPtr name, const TableOptions& options = {});

// Does the same for the lines that readLogLines() returns.
EpochLogTable epochLogTable(
    kj::ArrayPtr<const LogLine> lines, kj::StringPtr name, const TableOptions& options);

// Returns the table of `file` in the form of MXNet's results page: `| epoch | train accuracy |
// valid accuracy |`. Throws FAILED if the table is not one by epochs.
runner::TextTable pageTable(const runner::TextTable& table, kj::StringPtr file);

// Returns `Mean epoch time after the first epoch: 11.26 s`, or a sentence that there is none.
kj::String epochTimes(const EpochLogTable& table);

}  // namespace tools
