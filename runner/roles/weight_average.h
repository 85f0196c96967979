// runner/roles/weight_average.h: a moving average of the weights, at worker 0.
#pragma once

#include <kj/array.h>

#include "configs/language/state_visitor.h"
#include "nn/network/graph.h"

namespace runner {

// Averages parameters and moving statistics over steps: a ← d · a + (1 - d) · w, where d is the
// smaller one of `decay` and (1 + n) / (10 + n), and n counts the values that were taken before
// (TensorFlow's ExponentialMovingAverage with `num_updates`). The first values are taken as they
// are. For one thread.
class WeightAverage {
public:
  WeightAverage(double decay, const nn::Graph& graph);

  // Takes the weights after `step` steps. Does nothing if it has taken those of this step, or if no
  // step was made.
  void take(
      uint64_t step, kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics);

  // The parameters, then the moving statistics.
  kj::ArrayPtr<const float> values() const { return averages; }

  // Visits all members, to save and to restore them.
  void visitState(configs::StateVisitor& visitor);

private:
  const double decay;
  kj::Array<float> averages;
  uint64_t taken = 0;  // values
  uint64_t last = 0;   // the step of the newest ones
};

}  // namespace runner
