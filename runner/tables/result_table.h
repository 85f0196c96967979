// runner/tables/result_table.h: the table of a run, made of its log: text in, text out.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

#include "runner/logs/log_lines.h"
#include "runner/text/text_table.h"

namespace runner {

using kj::uint;

// How the workers' figures of one epoch become one. The time is the mean in any case.
enum class Combine {
  MEAN,
  // The greatest accuracy; a nan counts only where all workers have it.
  MAX
};

// What a metric was in one epoch, over all workers. A figure that the log does not have is null.
struct MetricFigures {
  kj::Maybe<double> train;
  kj::Maybe<double> validation;
};

// One epoch, over all workers.
struct ResultRow {
  // From 1: the log's number plus one.
  uint epoch;

  // One for each of the table's metrics. Accuracies are 0 to 1.
  kj::Array<MetricFigures> metrics;

  // Seconds of training. Null if the log does not have them.
  kj::Maybe<double> time_s;
};

// The epochs in rising order.
struct ResultTable {
  kj::Array<ResultRow> rows;

  // Mean of the times of all epochs after the first one, those that make no row included. The first
  // is left out, because it also pays for what happens once.
  kj::Maybe<double> laterEpochs_s;

  // As TableOptions has them.
  kj::Array<kj::String> metrics = kj::arr(kj::str("accuracy"));

  // Which of the wanted epochs the log does not have, a sentence; empty if it has them all.
  kj::String absent;
};

struct TableOptions {
  Combine combine = Combine::MEAN;

  // Which of the log's runs, from 1. Null: the log must hold one only.
  kj::Maybe<uint> run;
  // What to do about a log with several runs where `run` is null. Empty: choose one with --run.
  kj::StringPtr otherRuns;

  // Only epochs (from 1) that this divides. Not 0.
  uint every = 1;

  // Only these epochs (from 1); empty: all. Those that the log does not have make no row.
  kj::Array<uint> epochs;

  // The metrics that have columns; capital and small letters count as the same. Empty: accuracy.
  kj::Array<kj::String> metrics;
};

// Makes the table of the log file `name` (used in messages), whose whole text is `log`, ours or
// MXNet's of any period (see log_lines.h). Takes the epoch lines of the wanted metrics and the
// times. The lines of all workers for one epoch are combined.
//
// A second run in the file begins where a node's epoch goes back, or says the same of the same
// epoch again, or, among lines without `Node[r]`, where an epoch-0 line follows one of epoch 2 or
// later. (Without nodes, runs of one or two epochs, one behind the other, look like workers of one
// run.)
//
// Throws FAILED if the log has no epoch lines, holds several runs and `options.run` is null (the
// message has both lines of the first seam), or has fewer runs than `options.run`; if it has other
// metrics and not one of the wanted ones, which the message names; and if no epoch is left to show.
// A log of times alone has empty columns for accuracy.
ResultTable readResultTable(
    kj::ArrayPtr<const char> log, kj::StringPtr name, const TableOptions& options = {});

// The same of the log's lines, as readLogLines() gives them.
ResultTable resultTable(
    kj::ArrayPtr<const LogLine> lines, kj::StringPtr name, const TableOptions& options);

// The columns epoch, train-<metric> for each metric, valid-<metric> for each, and time; a figure
// that is not there leaves its cell empty. In Markdown the rows are `| %2d | %f | %f | %.1f |`.
TextTable textOf(const ResultTable& table);

// The table of `file` as MXNet's results page has it: `| epoch | train accuracy | valid accuracy
// |`. Throws FAILED if it is not one by epochs.
TextTable pageTable(const TextTable& table, kj::StringPtr file);

// `Mean epoch time after the first epoch: 11.26 s`, or that there is none.
kj::String epochTimes(const ResultTable& table);

kj::String formatTable(const ResultTable& table, TableFormat format);

}  // namespace runner
