#include "nn/profile.h"

#include <kj/debug.h>

namespace nn {

namespace {

// Keeps the counters of different lanes in different cache lines.
constexpr size_t GAP = 8;

}  // namespace

double Profile::seconds(NodeId node, Direction direction) const {
  double sum_ns = 0;
  for (auto& lane: counters) sum_ns += lane[2 * node + direction];
  return counters.size() == 0 ? 0 : sum_ns * 1e-9 / counters.size();
}

void Profile::clear() {
  for (auto& lane: counters) {
    for (auto& counter: lane) counter = 0;
  }
}

uint Profile::addLanes(uint lanes, const Graph& graph) {
  uint first = counters.size();
  size_t size = 2 * graph.nodes.size() + GAP;
  KJ_REQUIRE(first == 0 || counters[0].size() == size, "a profile is of one graph");
  for (uint i = 0; i < lanes; ++i) counters.add(kj::heapArray<uint64_t>(size));
  clear();
  return first;
}

}  // namespace nn
