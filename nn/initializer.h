// nn/initializer.h: how parameters begin.
#pragma once

#include <kj/array.h>

#include "configs/language/reader.h"
#include "nn/graph.h"

namespace nn {

// How weights begin. Biases and betas are 0, gammas 1.
struct Initializer {
  enum Kind { UNIFORM, XAVIER } kind = UNIFORM;
  double scale = 0;  // uniform: in ±scale
  // xavier: flat in ±sqrt(magnitude / factor), or gaussian with deviation sqrt(magnitude / factor).
  enum Distribution { FLAT, GAUSSIAN } distribution = FLAT;
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
