#include "nn/cuda/lowering.h"

#include <kj/debug.h>

#include "nn/cuda/passes.h"

namespace nn::cuda {

kj::Array<SegmentWork> lower(Draft& draft, const Graph& graph, Phase phase,
    const LoweringOptions& options, const DeviceArrays& arrays) {
  auto work = kj::heapArray<SegmentWork>(graph.segments.size());
  Passes passes(draft, graph, phase, options, arrays);
  auto& units = passes.units;
  UnitId u = 0;
  for (uint s = 0; s < work.size(); ++s) {
    draft.begin(work[s].forward);
    for (; u < units.size() && units[u].segment == s; ++u) passes.forward(u);
  }
  if (phase == Phase::VALIDATE) return work;
  for (uint s = work.size(); s-- > 0;) {
    draft.begin(work[s].backward);
    for (; u > 0 && units[u - 1].segment == s; --u) {
      if (units[u - 1].trains) passes.backward(u - 1);
    }
  }
  return work;
}

}  // namespace nn::cuda
