#include "nn/initializer.h"

#include <kj/debug.h>

#include <cmath>

#include "configs/language/random.h"
#include "nn/word.h"

namespace nn {
namespace {

constexpr Word<Initializer::Distribution> DISTRIBUTIONS[] = {
    {"uniform", "Flat in ±sqrt(magnitude / factor).", Initializer::FLAT},
    {"gaussian", "Normal with standard deviation sqrt(magnitude / factor).", Initializer::GAUSSIAN},
};

constexpr Word<Initializer::Factor> FACTORS[] = {
    {"fan_in", "Inputs of one output: the product of all dimensions of the weight but the first.",
        Initializer::FAN_IN},
    {"fan_out", "Outputs: the first dimension of the weight.", Initializer::FAN_OUT},
    {"average", "The mean of both.", Initializer::AVERAGE},
};

Initializer readUniform(configs::Reader& reader) {
  return {.kind = Initializer::UNIFORM,
      // 0.07 is what MXNet's CIFAR-10 scripts began with.
      .scale = reader.real("scale", "Weights are drawn from ±scale.", {.above = 0}, 0.07)};
}

Initializer readXavier(configs::Reader& reader) {
  Initializer result{.kind = Initializer::XAVIER};
  result.distribution =
      chooseWord(reader, "distribution", "How weights are spread.", DISTRIBUTIONS, "uniform");
  result.factor =
      chooseWord(reader, "factor", "What the magnitude is divided by.", FACTORS, "average");
  result.magnitude =
      reader.real("magnitude", "Weights grow with its root; see `distribution`.", {.above = 0}, 3);
  return result;
}

constexpr configs::Kind<Initializer> ROWS[] = {
    {"uniform", "Weights flat in ±scale, whatever their size.", readUniform},
    {"xavier", "Weights that keep the size of what passes through (Glorot and Bengio 2010).",
        readXavier},
};

void fillWeight(const Key& key, const Initializer& initializer, configs::Random random,
    kj::ArrayPtr<float> values) {
  double scale = initializer.scale;
  bool isGaussian = false;
  if (initializer.kind == Initializer::XAVIER) {
    double fanIn = key.cols, fanOut = key.rows;
    double factor = initializer.factor == Initializer::FAN_IN    ? fanIn
                    : initializer.factor == Initializer::FAN_OUT ? fanOut
                                                                 : (fanIn + fanOut) / 2;
    scale = std::sqrt(initializer.magnitude / factor);
    isGaussian = initializer.distribution == Initializer::GAUSSIAN;
  }
  for (float& value: values) {
    value = float(scale * (isGaussian ? random.normal() : 2 * random.uniform() - 1));
  }
}

}  // namespace

constinit const kj::ArrayPtr<const configs::Kind<Initializer>> INITIALIZERS = ROWS;

void initialize(const Graph& graph, const Initializer& initializer, uint64_t seed,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<float> statistics) {
  KJ_REQUIRE(parameters.size() == graph.parameters, parameters.size(), graph.parameters);
  KJ_REQUIRE(statistics.size() == graph.statisticsSize, statistics.size(), graph.statisticsSize);
  for (uint64_t i = 0; i < graph.keys.size(); ++i) {
    auto& key = graph.keys[i];
    auto values = parameters.slice(key.offset, key.offset + key.size);
    switch (key.role) {
      case Key::WEIGHT:
        fillWeight(
            key, initializer, configs::Random(seed, configs::Purpose::INITIAL_VALUES, i), values);
        break;
      case Key::BIAS:
      case Key::BETA:
        for (float& value: values) value = 0;
        break;
      case Key::GAMMA:
        for (float& value: values) value = 1;
        break;
    }
  }
  for (auto& statistic: graph.statistics) {
    auto values = statistics.slice(statistic.offset, statistic.offset + statistic.size);
    for (float& value: values) value = statistic.initialValue;
  }
}

}  // namespace nn
