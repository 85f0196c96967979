// tools/bench/network_rows.h: the figures of `bench network`: from rounds to a table or JSON.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace tools {

using kj::uint;

// What was seen in one round, one part after the other.
struct NetworkRound {
  double raw_bytes_per_s;  // of one stream through two links
  double bytes;            // of values a step, through the busiest link's busier way
  double exchange_s;       // a step's pushes and pulls, without computing
  double compute_s;        // what a step computes, without pushes and pulls
  double step_s;           // a training step

  // What the links need for a step at least.
  double network_s() const { return bytes / raw_bytes_per_s; }
  // What a step needs at least.
  double bound_s() const { return kj::max(network_s(), compute_s); }
};

// What was seen at one bandwidth: medians of its rounds, each figure's own.
struct NetworkRow {
  uint mbit;  // of a link, each way
  double raw_mbit;
  double bytes;
  double network_s;
  double exchange_s;
  double compute_s;
  double step_s;
  double stepPerBound;  // of one round each
  // What an exchange takes beside its bytes: `runner explain` takes it.
  double overhead_s;
};

// There is one round at least.
NetworkRow rowOf(uint mbit, kj::ArrayPtr<const NetworkRound> rounds);

// A table for the terminal.
kj::String textOf(kj::ArrayPtr<const NetworkRow> rows);
// An array with an object for each row.
kj::String jsonOf(kj::ArrayPtr<const NetworkRow> rows);

}  // namespace tools
