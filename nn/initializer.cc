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

constexpr Word<Initializer::Distribution> HE_DISTRIBUTIONS[] = {
    {"gaussian", "Normal with standard deviation sqrt(2 / fan_in).", Initializer::GAUSSIAN},
    {"uniform", "Flat in ±sqrt(6 / fan_in).", Initializer::FLAT},
    {"truncated",
        "Normal with sqrt(1.3 · 2 / fan_in), drawn again beyond two deviations: TensorFlow's "
        "variance_scaling_initializer.",
        Initializer::TRUNCATED},
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

Initializer readNormal(configs::Reader& reader) {
  return {.kind = Initializer::NORMAL,
      .scale = reader.real("deviation", "Standard deviation.", {.above = 0}, 1)};
}

Initializer readTruncatedNormal(configs::Reader& reader) {
  return {.kind = Initializer::TRUNCATED_NORMAL,
      .scale = reader.real("deviation", "Standard deviation before the cut.", {.above = 0}, 1),
      .dividesByFanIn = reader.flag("fan_in",
          "Divides the deviation by the root of a weight's inputs: the product of all its "
          "dimensions but the first.",
          false)};
}

Initializer readHe(configs::Reader& reader) {
  Initializer result{.kind = Initializer::HE};
  result.distribution =
      chooseWord(reader, "distribution", "How weights are spread.", HE_DISTRIBUTIONS, "gaussian");
  return result;
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
    {"normal", "Normal weights, whatever their size.", readNormal},
    {"truncated_normal", "Normal weights, drawn again beyond two deviations, as TensorFlow's.",
        readTruncatedNormal},
    {"xavier", "Weights that keep the size of what passes through (Glorot and Bengio 2010).",
        readXavier},
    {"he",
        "Weights that keep the size of what passes through ReLUs (He et al. 2015); fan_in is the "
        "product of all dimensions of the weight but the first.",
        readHe},
};

// How the values of one weight are spread.
struct Spread {
  Initializer::Distribution distribution;
  double scale;  // the deviation, or half of the range
};

Spread xavierSpread(const Initializer& initializer, double fanIn, double fanOut) {
  double factor = initializer.factor == Initializer::FAN_IN    ? fanIn
                  : initializer.factor == Initializer::FAN_OUT ? fanOut
                                                               : (fanIn + fanOut) / 2;
  return {initializer.distribution, std::sqrt(initializer.magnitude / factor)};
}

Spread heSpread(Initializer::Distribution distribution, double fanIn) {
  switch (distribution) {
    case Initializer::GAUSSIAN:
      return {distribution, std::sqrt(2 / fanIn)};
    case Initializer::FLAT:
      return {distribution, std::sqrt(6 / fanIn)};
    case Initializer::TRUNCATED:
      return {distribution, std::sqrt(1.3 * 2 / fanIn)};
  }
  KJ_UNREACHABLE;
}

Spread spreadOf(const Initializer& initializer, const Key& key) {
  double fanIn = key.cols, fanOut = key.rows;
  switch (initializer.kind) {
    case Initializer::UNIFORM:
      return {Initializer::FLAT, initializer.scale};
    case Initializer::NORMAL:
      return {Initializer::GAUSSIAN, initializer.scale};
    case Initializer::TRUNCATED_NORMAL:
      return {Initializer::TRUNCATED,
          initializer.scale / (initializer.dividesByFanIn ? std::sqrt(fanIn) : 1)};
    case Initializer::XAVIER:
      return xavierSpread(initializer, fanIn, fanOut);
    case Initializer::HE:
      return heSpread(initializer.distribution, fanIn);
  }
  KJ_UNREACHABLE;
}

// One value of deviation 1, or in ±1.
double drawUnit(Initializer::Distribution distribution, configs::Random& random) {
  if (distribution == Initializer::FLAT) return 2 * random.uniform() - 1;
  double value = random.normal();
  while (distribution == Initializer::TRUNCATED && std::abs(value) > 2) value = random.normal();
  return value;
}

void fillWeight(const Key& key, const Initializer& initializer, configs::Random random,
    kj::ArrayPtr<float> values) {
  auto spread = spreadOf(initializer, key);
  for (float& value: values) value = float(spread.scale * drawUnit(spread.distribution, random));
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
