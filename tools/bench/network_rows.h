// tools/bench/network_rows.h: turns the rounds of `bench network` into a table or JSON.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace tools {

using kj::uint;

// The measurements of one round. Its parts are measured one after another.
struct NetworkRound {
  double raw_bytes_per_s;  // of one stream through two links
  double bytes;            // of values per step, in the busier direction of the busiest link
  double exchange_s;       // a step's pushes and pulls, without computing
  double compute_s;        // a step's computing, without pushes and pulls
  double step_s;           // a training step

  // The least time that the links need for a step.
  double network_s() const { return bytes / raw_bytes_per_s; }
  // The least time of a step.
  double bound_s() const { return kj::max(network_s(), compute_s); }
};

// The measurements at one bandwidth.
struct NetworkRow {
  uint mbit;                    // of a link, in each direction
  kj::Array<kj::String> cells;  // of the table
  kj::String json;              // an object
};

// Returns the median of each figure over the rounds, of which there is at least one.
NetworkRow rowOf(uint mbit, kj::ArrayPtr<const NetworkRound> rounds);

// Returns a table for the terminal.
kj::String textOf(kj::Array<NetworkRow> rows);
// Returns an array with one object per row.
kj::String jsonOf(kj::ArrayPtr<const NetworkRow> rows);

}  // namespace tools
