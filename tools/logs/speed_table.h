// tools/logs/speed_table.h: the table of a log that has only speed lines: how fast each worker
// was.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include "runner/text/text_table.h"
#include "tools/logs/epoch_lines.h"

namespace tools {

// The speed lines of one worker, in images/s.
struct SpeedRow {
  kj::Maybe<uint> rank;  // null for all lines without `Node[r]`
  double mean = 0;
  double least = 0;
  double most = 0;
  uint64_t count = 0;
};

struct SpeedTable {
  // Sorted by rank. Lines without a rank come last.
  kj::Array<SpeedRow> rows;

  // How many lines have an infinite speed or nan. MXNet writes `inf` if no time has passed. These
  // lines are in no row.
  uint64_t withoutSpeed = 0;
};

// Makes the table of the speed lines among `lines`. Each line has the same weight.
SpeedTable speedTable(kj::ArrayPtr<const LogLine> lines);

// Returns the columns worker (`all` without a rank), images/s, minimum, maximum and count.
runner::TextTable textOf(const SpeedTable& table);

}  // namespace tools
