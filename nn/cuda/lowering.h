// nn/cuda/lowering.h: lowers a graph to lists of work.
#pragma once

#include "nn/cuda/draft.h"
#include "nn/units.h"

namespace nn::cuda {

// Arrays that stay on the device. Arrays of floats are the flat ones of the program.
struct DeviceArrays {
  const float* parameters;
  float* gradients;
  float* statistics;
  const float* pixels;    // N×C×H×W
  const int32_t* labels;  // N
  // N for each of droppingNodes(), one after another
  const DropoutMask* masks;
  RowResult* rows;
  BatchSums* sums;  // two: of the last batch, and the total
  float* logits;    // N×classes
};

// How the work of a program is computed.
struct LoweringOptions {
  Element element;     // of values
  bool tensorFloats;   // see ConvolutionProblem
  bool deterministic;  // likewise
  float lossScale;     // factor of the gradients of values: see lower()
};

// The work of one segment.
struct SegmentWork {
  kj::Vector<Work> forward;
  kj::Vector<Work> backward;
};

// How a network runs. Values are stored image by image, with channels innermost. Each pass over
// memory does as much as it can. For instance, a batch norm is one pass that sums, and one pass
// that normalizes, adds a residual, applies an activation and writes to its place in a concat. The
// same holds backward. Libraries compute the convolutions. Gradients in the flat arrays are sums
// over the batch. Gradients of values are lossScale times as large.
//
// Asks `draft` for the work of all segments. Call it for both drafts with the same arguments. Only
// the second draft fills the lists.
kj::Array<SegmentWork> lower(Draft& draft, const Graph& graph, Phase phase,
    const LoweringOptions& options, const DeviceArrays& arrays);

}  // namespace nn::cuda
