// nn/cpu/stages.h: the units of a graph in the order in which lanes compute them, divided into
// stages.
#pragma once

#include "nn/units.h"

namespace nn::cpu {

// A *stage* is a list of tasks that a lane works through chunk by chunk of its images. All lanes
// meet at its end. A stage ends where the whole batch is needed: at the statistics of a batch norm,
// forward and backward. Forward stages count from 0. The numbers of backward stages continue from
// there, segment by segment.
//
// A batch norm takes the ReLU or GELU after it. A convolution, dense layer, pool or sum takes any
// function after it but GELU, whose gradient needs its input. In validation, a batch norm right
// after a convolution is folded into it. Other batch norms use the moving statistics, so no stage
// waits for the batch.
struct StagedUnit: public Unit {
  // Whether its value is not stored, but computed from stored values wherever it is needed, forward
  // and backward, chunk by chunk in cache. True for batch norms, GELUs and concats, except before a
  // batch norm or GELU, and for a concat in a concat: chains would be recomputed from their start.
  bool recomputed = false;
  // Whether the unit is a convolution whose bias the batch norm right after it cancels, so that the
  // bias is not added. False if an earlier batch norm was folded into the convolution: the folded
  // bias is added.
  bool biasIsInert = false;

  uint at = 0;          // the stage of its forward task
  uint ready = 0;       // the first stage that can use its value
  uint complete = 0;    // the backward stage after which the gradient of its value is whole
  uint backwardAt = 0;  // the stage of its backward tasks
};

// The units of a graph, and the stages of its segments.
struct Stages {
  kj::Array<StagedUnit> units;  // in the order of the nodes
  kj::Array<Range> forward;     // of each segment
  kj::Array<Range> backward;    // of each segment; empty ranges in validation
};

Stages stagesOf(const Graph& graph, Phase phase);

}  // namespace nn::cpu
