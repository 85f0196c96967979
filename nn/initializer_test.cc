#include "nn/initializer.h"

#include <doctest/doctest.h>

#include <cmath>

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

TEST_CASE("Initializer: weights are drawn, biases and betas are 0, gammas 1, statistics as said") {
  Values values({.kind = Initializer::UNIFORM, .scale = 0.07});
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

TEST_CASE("Initializer: normal weights have the deviation given, whatever their dimensions") {
  Initializer normal{.kind = Initializer::NORMAL, .scale = 0.5};
  CHECK(Values(normal).deviation(DENSE_WEIGHT) == doctest::Approx(0.5).epsilon(0.02));
  // Among 32000 a normal draw goes beyond three deviations.
  CHECK(Values(normal).largest(DENSE_WEIGHT) > 1.5f);
}

// A normal distribution cut at two deviations has 0.8796 of its deviation.
constexpr double CUT = 0.8796;

TEST_CASE("Initializer: a truncated normal ends at two deviations, by fan in if told so") {
  Initializer truncated{.kind = Initializer::TRUNCATED_NORMAL, .scale = 0.5};
  CHECK(Values(truncated).largest(DENSE_WEIGHT) <= 1);
  CHECK(Values(truncated).largest(DENSE_WEIGHT) > 0.99f);
  CHECK(Values(truncated).deviation(DENSE_WEIGHT) == doctest::Approx(0.5 * CUT).epsilon(0.02));
  truncated.dividesByFanIn = true;
  CHECK(Values(truncated).deviation(DENSE_WEIGHT) ==
        doctest::Approx(0.5 * CUT / std::sqrt(800)).epsilon(0.02));
}

TEST_CASE("Initializer: he's deviation is the root of two by fan in, however it is spread") {
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

TEST_CASE("Initializer: the values depend on seed and key alone") {
  Initializer uniform{.kind = Initializer::UNIFORM, .scale = 0.07};
  Values first(uniform, 1), again(uniform, 1), other(uniform, 2);
  CHECK(first.parameters == again.parameters);
  CHECK(first.of(CONV_WEIGHT)[0] != other.of(CONV_WEIGHT)[0]);
  CHECK(first.of(CONV_WEIGHT)[0] != first.of(DENSE_WEIGHT)[0]);
}

}  // namespace
}  // namespace nn
