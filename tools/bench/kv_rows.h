// tools/bench/kv_rows.h: the figures of `bench kvstore`: from round trips to a table or JSON.
#pragma once

#include <kj/string.h>
#include <kj/vector.h>

#include "tools/bench/kv_processes.h"

namespace tools {

// What was measured of one side, block by block.
class KvFigures {
public:
  // Makes a block of so many round trips. `counts`: it is no warming up.
  void block(KvSide& side, uint64_t trips, bool counts);

  // Of all trips that count, in µs.
  double median_us() const;
  double best_us() const;
  // Processor time of all processes a trip; null if that is not known.
  kj::Maybe<double> used_us() const;
  // Of the last block, whether it counts or not.
  double lastMedian_us() const { return last_us; }
  uint64_t trips() const { return times_us.size(); }
  // The median of the blocks' median times, each divided by that of the other's block beside it.
  double ratioTo(const KvFigures& other) const;

private:
  kj::Vector<double> times_us;
  kj::Vector<double> medians_us;
  uint64_t used_ns = 0;
  bool isTimeKnown = true;
  double last_us = 0;
};

// A line of the table.
struct KvRow {
  kj::String name;
  KvFigures figures;
  // What it is compared with, an index among the rows of its case: a store with the limit of its
  // wire, a peer with the first store (then ratios are those of times too: 2 is twice as long).
  kj::Maybe<uint> other = nullptr;
  // Why there are no figures; empty: there are.
  kj::String skipped = nullptr;
};

struct KvRows {
  KvCase kvCase;
  kj::Vector<KvRow> rows;
};

// A table for the terminal, under a line that names the case.
kj::String textOf(const KvRows& rows);
// An object for each row, with a comma between them.
kj::String jsonOf(const KvRows& rows);

// The middle of some numbers, of which there is at least one; they are put in order.
double medianOf(kj::ArrayPtr<double> values);

}  // namespace tools
