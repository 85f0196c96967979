// nn/initializer.h: how parameters begin.
#pragma once

#include <kj/array.h>

#include "configs/language/reader.h"
#include "nn/graph.h"

namespace nn {

// How weights begin. Biases and betas are 0, gammas 1.
struct Initializer {
  enum Kind { UNIFORM, NORMAL, TRUNCATED_NORMAL, XAVIER, HE } kind = UNIFORM;
  // uniform: in ±scale. normal, truncated_normal: the deviation.
  double scale = 0;
  // truncated_normal: the deviation is scale / sqrt(fan in).
  bool dividesByFanIn = false;
  // xavier: flat in ±sqrt(magnitude / factor), or gaussian with deviation sqrt(magnitude / factor).
  // he: gaussian with deviation sqrt(2 / fan in) (He et al. 2015, equation 10), flat with the same
  // deviation, in ±sqrt(6 / fan in), or truncated with deviation sqrt(1.3 · 2 / fan in) before the
  // cut, about sqrt(2 / fan in) after it (TensorFlow's variance_scaling_initializer).
  // Truncated: what lies beyond two deviations is drawn again.
  enum Distribution { FLAT, GAUSSIAN, TRUNCATED } distribution = FLAT;
  // Of a weight's first dimension (fan out) and the product of the others (fan in): one, or their
  // mean.
  enum Factor { FAN_IN, FAN_OUT, AVERAGE } factor = AVERAGE;
  double magnitude = 3;
};

// `init = { kind = "…" }`
extern const kj::ArrayPtr<const configs::Kind<Initializer>> INITIALIZERS;

// Fills the flat parameter array and the statistics with their initial values: a function of (seed,
// key) alone.
void initialize(const Graph& graph, const Initializer& initializer, uint64_t seed,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<float> statistics);

}  // namespace nn
