// runner/tables/speed_table.h: how fast each worker was: the table of a log that has only speed
// lines.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include "runner/logs/log_lines.h"
#include "runner/text/text_table.h"

namespace runner {

// The speed lines of one worker, in images/s.
struct SpeedRow {
  kj::Maybe<uint> rank;  // null: of all lines without `Node[r]`
  double mean = 0;
  double least = 0;
  double most = 0;
  uint64_t count = 0;
};

struct SpeedTable {
  // By rank; lines without a rank come last.
  kj::Array<SpeedRow> rows;

  // Lines whose speed is infinite or nan: MXNet writes `inf` where no time has passed. They are in
  // no row.
  uint64_t withoutSpeed = 0;
};

// Makes the table of the speed lines among `lines`. Each line counts the same.
SpeedTable speedTable(kj::ArrayPtr<const LogLine> lines);

// The columns worker (`all` without a rank), images/s, minimum, maximum and count.
TextTable textOf(const SpeedTable& table);

}  // namespace runner
