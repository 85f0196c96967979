#include "nn/network/initializer.h"

#include <kj/debug.h>

#include <cmath>

#include "configs/language/random.h"
#include "nn/network/whitening.h"

namespace nn {
namespace {

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

Spread torchSpread(double fanIn) {
  return {Initializer::FLAT, 1 / std::sqrt(fanIn)};
}

// `area` is what the fan out of a convolution is multiplied by.
Spread spreadOf(const Initializer& initializer, const Key& key, uint area) {
  double fanIn = key.cols, fanOut = double(key.rows) * area;
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
    case Initializer::TORCH:
      return torchSpread(fanIn);
    case Initializer::WHITENING:
      break;  // not drawn
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

void draw(Spread spread, configs::Random random, kj::ArrayPtr<float> values) {
  for (float& value: values) value = float(spread.scale * drawUnit(spread.distribution, random));
}

// Fills the arrays of one graph.
class Filling {
public:
  Filling(const Graph& graph, uint64_t seed, kj::ArrayPtr<const float> images)
      : graph(graph), seed(seed), images(images) {}

  // Fills key `k` according to `initializer`.
  void fill(uint64_t k, const Initializer& initializer, kj::ArrayPtr<float> values) {
    auto& key = graph.keys[k];
    configs::Random random(seed, configs::Purpose::INITIAL_VALUES, k);
    switch (key.role) {
      case Key::WEIGHT:
        if (initializer.kind == Initializer::WHITENING) {
          fillWhitening(key, initializer, values);
        } else {
          uint kernel = graph.fanOutHasKernelArea ? kernelOf(key) : 1;
          draw(spreadOf(initializer, key, kernel * kernel), random, values);
        }
        if (initializer.identity) setIdentity(key, values);
        break;
      case Key::BIAS:
        if (initializer.kind == Initializer::TORCH) {
          draw(torchSpread(graph.keys[graph.nodes[key.node].keys.begin].cols), random, values);
          break;
        }
        [[fallthrough]];
      case Key::BETA:
        for (float& value: values) value = 0;
        break;
      case Key::GAMMA:
        for (float& value: values) value = 1;
        break;
    }
  }

private:
  const Graph& graph;
  uint64_t seed;
  kj::ArrayPtr<const float> images;

  // Side of the kernel of a weight.
  uint kernelOf(const Key& key) const {
    auto& op = graph.nodes[key.node].op;
    return op.is<Conv2d>() ? op.get<Conv2d>().kernel : 1;
  }

  void fillWhitening(const Key& key, const Initializer& initializer, kj::ArrayPtr<float> values) {
    KJ_REQUIRE(images.size() > 0, "this weight is made from images", key.name);
    Shape shape = graph.inputShape();
    size_t taken = kj::min(images.size(), initializer.images * shape.size());
    whiten(images.slice(0, taken), shape, kernelOf(key), initializer.epsilon, values);
  }

  void setIdentity(const Key& key, kj::ArrayPtr<float> values) {
    uint kernel = kernelOf(key), area = kernel * kernel;
    for (uint filter = 0; filter < kj::min(key.rows, key.cols / area); ++filter) {
      auto weights = values.slice(uint64_t(filter) * key.cols, uint64_t(filter + 1) * key.cols);
      for (float& weight: weights) weight = 0;
      weights[filter * area + kernel / 2 * kernel + kernel / 2] = 1;
    }
  }
};

}  // namespace

uint imagesToInitialize(const Graph& graph) {
  uint result = 0;
  for (auto& key: graph.keys) {
    KJ_IF_MAYBE(own, key.initializer) result = kj::max(result, own->images);
  }
  return result;
}

void initialize(const Graph& graph, const Initializer& initializer, uint64_t seed,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<float> statistics,
    kj::ArrayPtr<const float> images) {
  KJ_REQUIRE(parameters.size() == graph.parameters, parameters.size(), graph.parameters);
  KJ_REQUIRE(statistics.size() == graph.statisticsSize, statistics.size(), graph.statisticsSize);
  Filling filling(graph, seed, images);
  for (uint64_t k = 0; k < graph.keys.size(); ++k) {
    auto& key = graph.keys[k];
    filling.fill(k, key.initializer.orDefault(initializer),
        parameters.slice(key.offset, key.offset + key.size));
  }
  for (auto& statistic: graph.statistics) {
    auto values = statistics.slice(statistic.offset, statistic.offset + statistic.size);
    for (float& value: values) value = statistic.initialValue;
  }
}

}  // namespace nn
