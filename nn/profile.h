// nn/profile.h: where the time of a program's steps goes, node by node.
#pragma once

#include <kj/array.h>
#include <kj/vector.h>

#include "nn/network/graph.h"

namespace nn {

// The time that lanes (threads of a program) spent on the nodes of a graph. A program that is made
// with one reads the clock around each piece of its work; others read none. It must outlive the
// program. Read it between steps only: lanes write without a lock, each its own numbers.
//
// What is computed together counts as one node's: an activation that is applied where a
// convolution's output lies has no time of its own.
class Profile {
public:
  enum Direction { FORWARD, BACKWARD };

  // Since the last clear(), the mean over all lanes. A lane that waits for others works on no node:
  // what the sum over nodes lacks of a step's time is this waiting, and what is around the program.
  double seconds(NodeId node, Direction direction) const;
  void clear();

  // For a program that is being made: its lanes, which are numbered from what comes back on.
  // Several programs (devices) of one graph may share a profile.
  uint addLanes(uint lanes, const Graph& graph);
  void add(uint lane, NodeId node, Direction direction, uint64_t ns) {
    counters[lane][2 * node + direction] += ns;
  }

private:
  kj::Vector<kj::Array<uint64_t>> counters;  // of each lane: ns of node 0 forward, backward, …
};

}  // namespace nn
