// nn/model.h: the [model] section: a network by name or layer by layer, and how its parameters begin.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/one-of.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "nn/graph.h"

namespace nn {

struct Layer;  // one table of [[model.layers]], read; see layers.h

// Where systems differ: one named set for the whole network; a layer's own keys win over it.
struct Conventions {
  const char* name;  // mxnet
  const char* doc;
  float batchNormEpsilon;
  float batchNormMomentum;
  float movingMeanStart;
  float movingVarianceStart;
  bool fixedGamma;
  Pool::Rounding poolRounding;
  // Learning rate inside the momentum (mom ← m·mom - lr·g; w ← w + mom), or outside (mom ← m·mom + g; w ← w - lr·mom).
  bool learningRateInsideMomentum;
  // Weight decay on all arrays, or on weights and gammas only.
  bool decayOnAllArrays;
};
extern const kj::ArrayPtr<const Conventions> CONVENTIONS;

// How weights begin. Biases and betas are 0, gammas 1.
struct Initializer {
  enum Kind { UNIFORM, XAVIER } kind;
  double scale = 0;                                // uniform: in ±scale
  enum Distribution { FLAT, GAUSSIAN } distribution = FLAT;  // xavier
  enum Factor { FAN_IN, FAN_OUT, AVERAGE } factor = AVERAGE;
  double magnitude = 3;
};

// [model]
struct ModelConfig {
  kj::OneOf<kj::String, kj::Array<Layer>> network;  // a name of NETWORKS, or layers
  const Conventions* conventions;
  Initializer initializer;
  configs::Span span;

  static ModelConfig read(configs::Reader& reader);
  ModelConfig(ModelConfig&&) noexcept(false);
  ModelConfig& operator=(ModelConfig&&) noexcept(false);
  ~ModelConfig() noexcept(false);
  ModelConfig();
};

// The graph of `config` for images of `input` and `classes` classes. Misfits go to `diagnostics` at the layer's line.
Graph buildGraph(const ModelConfig& config, Shape input, uint classes, configs::Diagnostics& diagnostics);

// Fills the flat parameter array and the statistics with their initial values: a function of (seed, key) alone.
void initialize(const Graph& graph, const Initializer& initializer, uint64_t seed,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<float> statistics);

}  // namespace nn
