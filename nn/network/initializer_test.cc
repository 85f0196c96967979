#include "nn/network/initializer.h"

#include <doctest/doctest.h>

#include <cmath>

#include "nn/network/whitening.h"

namespace nn {
namespace {

// 50×(8·3·3) weights, 50 biases, gamma, beta; then 40×(50·16).
Graph graph() {
  configs::Diagnostics diagnostics;
  GraphBuilder builder({8, 4, 4}, diagnostics);
  auto one = [](const NodeId& id) { return kj::arrayPtr(&id, 1); };
  NodeId data = 0;
  NodeId conv = builder.add("conv", Conv2d{50, 3, 1, 1, true}, one(data), {});
  NodeId norm = builder.add("bn", BatchNorm{1e-3f, 0.9f, false, 0.25f, 2}, one(conv), {});
  NodeId dense = builder.add("fc", Dense{40, true}, one(norm), {});
  return builder.finish(dense, {});
}

struct Values {
  Graph graph = nn::graph();
  kj::Array<float> parameters = kj::heapArray<float>(graph.parameters);
  kj::Array<float> statistics = kj::heapArray<float>(graph.statisticsSize);

  explicit Values(const Initializer& initializer, uint64_t seed = 1) {
    initialize(graph, initializer, seed, parameters, statistics);
  }
  kj::ArrayPtr<float> of(uint key) {
    return parameters.slice(graph.keys[key].offset, graph.keys[key].offset + graph.keys[key].size);
  }
  double deviation(uint key) {
    double squares = 0;
    for (float value: of(key)) squares += double(value) * value;
    return std::sqrt(squares / of(key).size());
  }
  float largest(uint key) {
    float result = 0;
    for (float value: of(key)) result = kj::max(result, std::abs(value));
    return result;
  }
};

constexpr uint CONV_WEIGHT = 0, CONV_BIAS = 1, GAMMA = 2, BETA = 3, DENSE_WEIGHT = 4;

TEST_CASE(
    "Initializer: weights are drawn, biases and betas are 0, gammas 1, statistics as configured") {
  Values values({.kind = Initializer::UNIFORM, .scale = 0.07});
  CHECK(values.deviation(CONV_WEIGHT) > 0);
  CHECK(values.deviation(DENSE_WEIGHT) > 0);
  CHECK(values.largest(CONV_BIAS) == 0);
  CHECK(values.largest(BETA) == 0);
  for (float gamma: values.of(GAMMA)) CHECK(gamma == 1);
  for (size_t i = 0; i < 50; ++i) {
    CHECK(values.statistics[i] == 0.25f);
    CHECK(values.statistics[50 + i] == 2);
  }
}

TEST_CASE("Initializer: uniform fills ±scale evenly") {
  Values values({.kind = Initializer::UNIFORM, .scale = 0.07});
  CHECK(values.largest(DENSE_WEIGHT) <= 0.07f);
  CHECK(values.largest(DENSE_WEIGHT) > 0.0699f);
  CHECK(values.deviation(DENSE_WEIGHT) == doctest::Approx(0.07 / std::sqrt(3)).epsilon(0.02));
}

TEST_CASE("Initializer: xavier takes its factor from the weight's dimensions") {
  Initializer xavier{.kind = Initializer::XAVIER};
  CHECK(Values(xavier).largest(CONV_WEIGHT) ==
        doctest::Approx(std::sqrt(3.0 / ((50 + 72) / 2.0))).epsilon(0.01));
  xavier.factor = Initializer::FAN_OUT;
  CHECK(Values(xavier).largest(CONV_WEIGHT) == doctest::Approx(std::sqrt(3.0 / 50)).epsilon(0.01));
  xavier.factor = Initializer::FAN_IN;
  xavier.distribution = Initializer::GAUSSIAN;
  xavier.magnitude = 2;
  CHECK(Values(xavier).deviation(DENSE_WEIGHT) ==
        doctest::Approx(std::sqrt(2.0 / 800)).epsilon(0.02));
}

TEST_CASE("Initializer: xavier's fan out counts the area of the kernel if the graph says so") {
  auto largest = [](Initializer::Factor factor, uint key) {
    Graph graph = nn::graph();
    graph.fanOutHasKernelArea = true;
    auto parameters = kj::heapArray<float>(graph.parameters);
    auto statistics = kj::heapArray<float>(graph.statisticsSize);
    initialize(graph, {.kind = Initializer::XAVIER, .factor = factor}, 1, parameters, statistics);
    float result = 0;
    for (float value:
        parameters.slice(graph.keys[key].offset, graph.keys[key].offset + graph.keys[key].size)) {
      result = kj::max(result, std::abs(value));
    }
    return result;
  };
  auto root = [](double factor) { return doctest::Approx(std::sqrt(3.0 / factor)).epsilon(0.01); };
  CHECK(largest(Initializer::FAN_OUT, CONV_WEIGHT) == root(50 * 9));
  CHECK(largest(Initializer::AVERAGE, CONV_WEIGHT) == root((50 * 9 + 72) / 2.0));
  CHECK(largest(Initializer::FAN_IN, CONV_WEIGHT) == root(72));
  CHECK(largest(Initializer::FAN_OUT, DENSE_WEIGHT) == root(40));
}

TEST_CASE("Initializer: normal weights have the deviation given, whatever their dimensions") {
  Initializer normal{.kind = Initializer::NORMAL, .scale = 0.5};
  CHECK(Values(normal).deviation(DENSE_WEIGHT) == doctest::Approx(0.5).epsilon(0.02));
  // Among 32000 normal draws, some lie beyond three deviations.
  CHECK(Values(normal).largest(DENSE_WEIGHT) > 1.5f);
}

// A normal distribution cut at two deviations has 0.8796 of its deviation.
constexpr double CUT = 0.8796;

TEST_CASE(
    "Initializer: a truncated normal ends at two deviations, which may be divided by fan in") {
  Initializer truncated{.kind = Initializer::TRUNCATED_NORMAL, .scale = 0.5};
  CHECK(Values(truncated).largest(DENSE_WEIGHT) <= 1);
  CHECK(Values(truncated).largest(DENSE_WEIGHT) > 0.99f);
  CHECK(Values(truncated).deviation(DENSE_WEIGHT) == doctest::Approx(0.5 * CUT).epsilon(0.02));
  truncated.dividesByFanIn = true;
  CHECK(Values(truncated).deviation(DENSE_WEIGHT) ==
        doctest::Approx(0.5 * CUT / std::sqrt(800)).epsilon(0.02));
}

TEST_CASE("Initializer: he has the deviation sqrt(2 / fan in), whatever its distribution") {
  Initializer he{.kind = Initializer::HE, .distribution = Initializer::GAUSSIAN};
  CHECK(Values(he).deviation(DENSE_WEIGHT) == doctest::Approx(std::sqrt(2.0 / 800)).epsilon(0.02));
  CHECK(Values(he).deviation(CONV_WEIGHT) == doctest::Approx(std::sqrt(2.0 / 72)).epsilon(0.04));
  he.distribution = Initializer::FLAT;
  CHECK(Values(he).deviation(DENSE_WEIGHT) == doctest::Approx(std::sqrt(2.0 / 800)).epsilon(0.02));
  CHECK(Values(he).largest(DENSE_WEIGHT) == doctest::Approx(std::sqrt(6.0 / 800)).epsilon(0.01));
  he.distribution = Initializer::TRUNCATED;
  double before = std::sqrt(1.3 * 2 / 800);
  CHECK(Values(he).deviation(DENSE_WEIGHT) == doctest::Approx(CUT * before).epsilon(0.02));
  CHECK(Values(he).deviation(DENSE_WEIGHT) == doctest::Approx(std::sqrt(2.0 / 800)).epsilon(0.02));
  CHECK(Values(he).largest(DENSE_WEIGHT) == doctest::Approx(2 * before).epsilon(0.01));
}

TEST_CASE("Initializer: torch is uniform in ±1 / sqrt(fan in), biases too") {
  Initializer torch{.kind = Initializer::TORCH};
  Values values(torch);
  CHECK(values.largest(DENSE_WEIGHT) <= float(1 / std::sqrt(800)));
  CHECK(values.largest(DENSE_WEIGHT) == doctest::Approx(1 / std::sqrt(800)).epsilon(0.01));
  // The fan in of the bias is that of its weight, 72.
  CHECK(values.largest(CONV_BIAS) <= float(1 / std::sqrt(72)));
  CHECK(values.deviation(CONV_BIAS) == doctest::Approx(1 / std::sqrt(3 * 72)).epsilon(0.2));
  CHECK(values.largest(BETA) == 0);
}

TEST_CASE(
    "Initializer: dirac passes each channel on at the centre, and other filters keep their base") {
  Initializer dirac{.kind = Initializer::TORCH, .identity = true};
  Values values(dirac), base({.kind = Initializer::TORCH});
  auto weights = values.of(CONV_WEIGHT);
  // Of 50 filters of 8×3×3 the first 8.
  for (uint i = 0; i < 8 * 72; ++i) {
    uint filter = i / 72, channel = i % 72 / 9;
    CHECK(weights[i] == (channel == filter && i % 9 == 4 ? 1 : 0));
  }
  CHECK(weights.slice(8 * 72, 50 * 72) == base.of(CONV_WEIGHT).slice(8 * 72, 50 * 72));
  CHECK(values.of(CONV_BIAS) == base.of(CONV_BIAS));
  // A dense layer of 40 units over 800 values: each unit passes on one value.
  for (uint i = 0; i < 40 * 800; ++i) CHECK(values.of(DENSE_WEIGHT)[i] == (i % 801 == 0 ? 1 : 0));
}

TEST_CASE("Initializer: a layer's own initializer takes precedence over the model's") {
  Initializer own{.kind = Initializer::NORMAL, .scale = 0.5}, model{.scale = 0.07};
  configs::Diagnostics diagnostics;
  GraphBuilder builder({8, 4, 4}, diagnostics);
  NodeId data = 0;
  NodeId conv = builder.add("conv", Conv2d{50, 3, 1, 1, true}, kj::arrayPtr(&data, 1), {}, own);
  NodeId dense = builder.add("fc", Dense{40, true}, kj::arrayPtr(&conv, 1), {});
  auto graph = builder.finish(dense, {});
  auto parameters = kj::heapArray<float>(graph.parameters);
  initialize(graph, model, 1, parameters, nullptr);
  CHECK(imagesToInitialize(graph) == 0);
  // The convolution has the values of an all-normal network, and the rest is uniform.
  CHECK(parameters.slice(0, 3600) == Values(own).of(CONV_WEIGHT));
  for (float value: parameters.slice(3650, graph.parameters)) CHECK(std::abs(value) <= 0.07f);
}

TEST_CASE(
    "Initializer: makes whitening filters from the number of first images that is configured") {
  Initializer whitening{.kind = Initializer::WHITENING, .images = 3, .epsilon = 5e-4};
  configs::Diagnostics diagnostics;
  GraphBuilder builder({3, 4, 4}, diagnostics);
  NodeId data = 0;
  NodeId conv =
      builder.add("whiten", Conv2d{24, 2, 1, 0, true}, kj::arrayPtr(&data, 1), {}, whitening);
  NodeId dense = builder.add("fc", Dense{10, true}, kj::arrayPtr(&conv, 1), {});
  auto graph = builder.finish(dense, {});
  REQUIRE(diagnostics.count() == 0);
  CHECK(imagesToInitialize(graph) == 3);
  auto images = kj::heapArray<float>(4 * 48);
  for (size_t i = 0; i < images.size(); ++i) images[i] = float(std::sin(i * i));

  auto parameters = kj::heapArray<float>(graph.parameters);
  initialize(graph, {}, 1, parameters, nullptr, images);
  auto expected = kj::heapArray<float>(24 * 12);
  whiten(images.slice(0, 3 * 48), {3, 4, 4}, 2, 5e-4, expected);
  CHECK(parameters.slice(0, 24 * 12) == expected);
  for (float bias: parameters.slice(24 * 12, 24 * 13)) CHECK(bias == 0);
  // Not of the fourth image.
  for (float& pixel: images.slice(3 * 48, 4 * 48)) pixel = 100;
  auto again = kj::heapArray<float>(graph.parameters);
  initialize(graph, {}, 1, again, nullptr, images);
  CHECK(again == parameters);
}

TEST_CASE("Initializer: the values depend on seed and key alone") {
  Initializer uniform{.kind = Initializer::UNIFORM, .scale = 0.07};
  Values first(uniform, 1), again(uniform, 1), other(uniform, 2);
  CHECK(first.parameters == again.parameters);
  CHECK(first.of(CONV_WEIGHT)[0] != other.of(CONV_WEIGHT)[0]);
  CHECK(first.of(CONV_WEIGHT)[0] != first.of(DENSE_WEIGHT)[0]);
}

}  // namespace
}  // namespace nn
