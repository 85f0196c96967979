// nn/profile.h: measures the time that the steps of a program take, node by node.
#pragma once

#include <kj/array.h>
#include <kj/vector.h>

#include "nn/network/graph.h"

namespace nn {

// The time that lanes (threads of a program) spent on the nodes of a graph. A program that is made
// with a profile reads the clock around each piece of its work. A program without one reads no
// clock. The profile must outlive the program. Read it between steps only: each lane writes its own
// numbers without a lock.
//
// Nodes that are computed in one pass count as one. For instance, an activation that is applied in
// place to the output of a convolution has no separate time.
class Profile {
public:
  enum Direction { FORWARD, BACKWARD };

  // Returns the seconds since the last clear(), as the mean over all lanes. The sum over all nodes
  // is less than the time of a step: lanes also wait for each other, and the program is only a part
  // of the step.
  double seconds(NodeId node, Direction direction) const;
  void clear();

  // Adds the lanes of a program that is being made. Returns the number of the first of them.
  // Several programs (devices) of one graph may share a profile.
  uint addLanes(uint lanes, const Graph& graph);
  void add(uint lane, NodeId node, Direction direction, uint64_t ns) {
    counters[lane][2 * node + direction] += ns;
  }

private:
  kj::Vector<kj::Array<uint64_t>> counters;  // of each lane: ns of node 0 forward, backward, …
};

}  // namespace nn
