// tools/bench/kv_rows.h: turns the round trips of `bench kvstore` into a table or JSON.
#pragma once

#include <kj/string.h>
#include <kj/vector.h>

#include "tools/bench/kv_case.h"
#include "tools/bench/kv_processes.h"

namespace tools {

// The measurements of one side, block by block.
class KvFigures {
public:
  // Makes a block of `trips` round trips. `counts` is false for warming up.
  void block(KvSide& side, uint64_t trips, bool counts);

  // The median of all trips that count, in µs.
  double median_us() const;
  double best_us() const;
  // The processor time of all processes per trip, or null if it is not known.
  kj::Maybe<double> used_us() const;
  // The median of the last block, whether it counts or not.
  double lastMedian_us() const { return last_us; }
  uint64_t trips() const { return times_us.size(); }
  // Returns the median of the ratios of blocks: the median time of each block over that of the
  // other side's block beside it.
  double ratioTo(const KvFigures& other) const;

private:
  kj::Vector<double> times_us;
  kj::Vector<double> medians_us;
  uint64_t used_ns = 0;
  bool isTimeKnown = true;
  double last_us = 0;
};

// A row of the table.
struct KvRow {
  kj::String name;
  KvFigures figures;
  // The row with which this one is compared, as an index among the rows of its case. A store is
  // compared with the limit of its wire. A peer is compared with the first store. Ratios are those
  // of times: 2 is twice as long.
  kj::Maybe<uint> other = nullptr;
  // Why the row has no figures. Empty if it has.
  kj::String skipped = nullptr;
};

// One case with all its rows.
struct KvRows {
  KvCase kvCase;
  kj::Vector<KvRow> rows;
};

// Returns a table for the terminal, under a line that names the case.
kj::String textOf(const KvRows& rows);
// Returns one object per row, with a comma between them.
kj::String jsonOf(const KvRows& rows);

}  // namespace tools
