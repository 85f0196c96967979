// runner/tables/result_table.h: a table with one row per epoch.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

#include "runner/text/text_table.h"

namespace runner {

using kj::uint;

// A metric in one epoch, over all workers. A figure that is not known is null.
struct MetricFigures {
  kj::Maybe<double> train;
  kj::Maybe<double> validation;
};

// One epoch, over all workers.
struct ResultRow {
  // From 1.
  uint epoch;

  // One per metric of the table. Accuracies are 0 to 1.
  kj::Array<MetricFigures> metrics;

  // Seconds of training. Null if they are not known.
  kj::Maybe<double> time_s;

  // The share of the validation images whose label is among the ResultTable::topK largest logits.
  kj::Maybe<double> topK = nullptr;
};

// The epochs in ascending order.
struct ResultTable {
  kj::Array<ResultRow> rows;

  // The metrics that have columns.
  kj::Array<kj::String> metrics = kj::arr(kj::str("accuracy"));

  // The k of ResultRow::topK. 0: there is no such column.
  uint topK = 0;
};

// Returns the title of that column, `valid-top-5`.
kj::String topKTitle(uint k);

// Returns the columns epoch, train-<metric> for each metric, valid-<metric> for each metric,
// valid-top-<k>, and time. Missing figures have empty cells. In Markdown the rows are `| %2d | %f |
// %f | %.1f |`.
TextTable textOf(const ResultTable& table);

}  // namespace runner
