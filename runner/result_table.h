// runner/result_table.h: the table of a run, made of its log: text in, text out.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

namespace runner {

using kj::uint;

// How the workers' figures of one epoch become one. The time is the mean in any case.
enum class Combine {
  MEAN,
  // The greatest accuracy; a worker's nan counts only where all have it.
  MAX
};

enum class TableFormat {
  MARKDOWN,
  // Columns with tabs between them.
  NONE,
  // As RFC 4180 has it, but with `\n` at the line ends.
  CSV
};

// One epoch, over all workers. A figure that the log does not have is null.
struct ResultRow {
  // From 1: the log's number plus one.
  uint epoch;

  // Accuracies, 0 to 1.
  kj::Maybe<double> train;
  kj::Maybe<double> validation;

  // Seconds of training.
  kj::Maybe<double> time_s;
};

// The epochs in rising order.
struct ResultTable {
  kj::Array<ResultRow> rows;
};

// A table and the file that it was read from.
struct NamedTable {
  kj::String name;
  ResultTable table;
};

struct TableOptions {
  Combine combine = Combine::MEAN;

  // Which of the log's runs, from 1. Null: the log must hold one only.
  kj::Maybe<uint> run;

  // Only epochs (from 1) that this divides. Not 0.
  uint every = 1;

  // Only these epochs (from 1); empty: all. Those that the log does not have make no row.
  kj::Array<uint> epochs;
};

// Makes the table of the log file `name` (used in messages), whose whole text is `log`, ours or
// MXNet's of any period (see log_lines.h). Takes the epoch lines of the metric `accuracy` and the
// times. The lines of all workers for one epoch are combined.
//
// A second run in the file begins where a node's epoch goes back, or, among lines without
// `Node[r]`, where an epoch-0 line follows one of epoch 2 or later. (Runs of a single epoch, one
// behind the other, look like workers of one run.)
//
// Throws FAILED if the log has no epoch lines, holds several runs and `options.run` is null (the
// message has both lines of the first seam), or has fewer runs than `options.run`.
ResultTable readResultTable(
    kj::ArrayPtr<const char> log, kj::StringPtr name, const TableOptions& options = {});

// The table as text, with a newline after each line. The rows of Markdown are
// `| %2d | %f | %f | %.1f |`; a figure that is not there leaves its cell empty.
kj::String formatTable(const ResultTable& table, TableFormat format);

// Each table under a line with its name, an empty line between tables; but CSV is one table with
// the name in a first column `file`. Empty where there are no tables.
kj::String formatTables(kj::ArrayPtr<const NamedTable> tables, TableFormat format);

}  // namespace runner
