// Tests each rule twice: with values worked out by hand, and by a comparison of many updates with
// plain loops in double.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <algorithm>
#include <cmath>

#include "configs/language/random.h"
#include "nn/optimizer/optimizer.h"

namespace nn {
namespace {

struct Read {
  configs::Diagnostics diagnostics;
  kj::Own<configs::Document> document;
  kj::Own<const Optimizer> optimizer;

  explicit Read(kj::StringPtr keys, bool asMxnet = true): conventions(CONVENTIONS[0]) {
    conventions.learningRateInsideMomentum = asMxnet;
    conventions.epsilonComesLast = !asMxnet;
    auto text = kj::str("optimizer = { ", keys, " }");
    document = configs::parse("x.toml", text, diagnostics);
    configs::Reading reading{diagnostics, {}};
    optimizer = configs::readDocument(*document, reading, [this](configs::Reader& reader) {
      return readOptimizer(reader, "optimizer", conventions);
    });
  }

private:
  Conventions conventions;
};

struct Call {
  double decay = 0;
  float rescale = 1;
  Key::Role role = Key::WEIGHT;
  size_t rows = 1;
};

// The values after an update for each of `gradients`, at a learning rate of 0.1.
kj::Array<float> updated(kj::StringPtr keys, kj::ArrayPtr<const float> first,
    kj::ArrayPtr<const kj::Array<float>> gradients, Call call = {}, bool asMxnet = true) {
  Read read(keys, asMxnet);
  CAPTURE(read.diagnostics.format("x.toml").cStr());
  REQUIRE(read.diagnostics.count() == 0);
  auto& rule = *read.optimizer;
  auto current = kj::heapArray<float>(first), next = kj::heapArray<float>(first.size());
  auto state = kj::heapArray<float>(first.size() * rule.stateArrays());
  for (float& value: state) value = 0;
  for (size_t t: kj::indices(gradients)) {
    rule.apply({.gradient = gradients[t],
        .rescale = call.rescale,
        .current = current,
        .next = next,
        .state = state,
        .learningRate = 0.1,
        .decay = call.decay,
        .number = t,
        .role = call.role,
        .rows = call.rows,
        .cols = first.size() / call.rows});
    std::swap(current, next);
  }
  return current;
}

// The same for a single value.
float updatedOne(kj::StringPtr keys, float first, std::initializer_list<float> gradients,
    Call call = {}, bool asMxnet = true) {
  kj::Vector<kj::Array<float>> lists;
  for (float gradient: gradients) lists.add(kj::heapArray<float>({gradient}));
  float values[] = {first};
  return updated(keys, values, lists, call, asMxnet)[0];
}

doctest::Approx near(double value) {
  return doctest::Approx(value).epsilon(1e-6);
}

TEST_CASE("sgd, nesterov: give values computed by hand") {
  auto keys = "kind = \"sgd\", momentum = 0.5, nesterov = true"_kj;
  for (bool asMxnet: {true, false}) {
    // v = 2, step 2 + 0.5 · 2; v = 0.5 · 2 + 1, step 1 + 0.5 · 2.
    CHECK(updatedOne(keys, 1, {2}, {}, asMxnet) == near(0.7));
    CHECK(updatedOne(keys, 1, {2, 1}, {}, asMxnet) == near(0.5));
  }
  // g = 0.5 · 2 + 3 · 1.
  CHECK(updatedOne(keys, 1, {2}, {.decay = 3, .rescale = 0.5}) == near(1 - 0.1 * 6));
  CHECK(Read("kind = \"sgd\", nesterov = true").diagnostics.count() == 1);
}

TEST_CASE("adamw: gives values computed by hand, with the decay beside the gradient") {
  auto keys = "kind = \"adamw\", epsilon = 1e-12"_kj;
  CHECK(Read(keys).optimizer->weightDecay() == 0.01);
  // The first step has the size of the rate whatever the gradient, and the decay takes 0.1 · 0.5.
  CHECK(updatedOne(keys, 1, {3}, {.decay = 0.5}) == near(0.85));
  CHECK(updatedOne(keys, 1, {-0.01f}, {.decay = 0.5}) == near(1.05));
  // A gradient of 0 leaves the decay alone; coupled, it would be a step of the size of the rate.
  CHECK(updatedOne(keys, 1, {0, 0}, {.decay = 0.5}) == near(0.95 * 0.95));
  // Epsilon is added to the corrected root: 1 - 0.1 · 2 / (2 + 2).
  CHECK(updatedOne("kind = \"adamw\", epsilon = 2", 1, {2}) == near(0.95));
}

TEST_CASE("adam: PyTorch's conventions add epsilon to the corrected root") {
  auto keys = "kind = \"adam\", beta2 = 0.75, epsilon = 2"_kj;
  // The first square's mean is 0.25 · 4, corrected 4; the mean 0.1 · 2, corrected 2.
  CHECK(updatedOne(keys, 1, {2}, {}, false) == near(1 - 0.1 * 2 / (2 + 2)));
  CHECK(updatedOne(keys, 1, {2}, {}, true) == near(1 - 0.1 * 0.5 * 2 / (1 + 2)));
}

TEST_CASE("rmsprop: both forms give values computed by hand") {
  // The mean of the squares is 0.25 · 4.
  CHECK(updatedOne("kind = \"rmsprop\", smoothing = 0.75", 1, {2}) == near(0.8));
  // With MXNet's conventions, epsilon is below the root, unless `epsilon_below_root` says
  // otherwise.
  auto large = "kind = \"rmsprop\", smoothing = 0.75, epsilon = 3"_kj;
  CHECK(updatedOne(large, 1, {2}, {}, true) == near(0.9));
  CHECK(updatedOne(large, 1, {2}, {}, false) == near(0.95));
  for (bool asMxnet: {true, false}) {
    auto below = kj::str(large, ", epsilon_below_root = true");
    auto outside = kj::str(large, ", epsilon_below_root = false");
    CHECK(updatedOne(below, 1, {2}, {}, asMxnet) == near(0.9));
    CHECK(updatedOne(outside, 1, {2}, {}, asMxnet) == near(0.95));
  }
  // The mean of the gradient is 0.5: a variance of 0.75.
  CHECK(updatedOne("kind = \"rmsprop\", smoothing = 0.75, centered = true", 1, {2}) ==
        near(1 - 0.2 / std::sqrt(0.75)));
  // 1 of 2 / 1, then 0.5 of it and 2 / sqrt(0.75 + 1).
  for (bool asMxnet: {true, false}) {
    CHECK(updatedOne("kind = \"rmsprop\", smoothing = 0.75, momentum = 0.5", 1, {2, 2}, {},
              asMxnet) == near(1 - 0.2 - (0.1 + 0.2 / std::sqrt(1.75))));
  }
}

TEST_CASE("lars: gives values computed by hand, and biases have the plain rate") {
  auto keys = "kind = \"lars\", momentum = 0, trust_ratio = 0.5"_kj;
  float first[] = {3, 4};
  auto gradients = kj::heapArray<kj::Array<float>>(1);
  gradients[0] = kj::heapArray<float>({0, 10});
  Call call{.decay = 0.2, .rescale = 0.5};
  // |w| = 5, |g| = 5: 0.5 · 5 / (5 + 0.2 · 5) of the rate.
  auto weights = updated(keys, first, gradients, call);
  CHECK(weights[0] == near(3 - 0.1 * 2.5 / 6 * 0.6));
  CHECK(weights[1] == near(4 - 0.1 * 2.5 / 6 * 5.8));
  call.role = Key::BIAS;
  auto biases = updated(keys, first, gradients, call);
  CHECK(biases[0] == near(3 - 0.1 * 0.6));
  CHECK(biases[1] == near(4 - 0.1 * 5.8));
  auto every = updated(kj::str(keys, ", every_key = true"), first, gradients, call);
  CHECK(every[1] == weights[1]);
  // If a length is 0, the plain rate applies.
  CHECK(updatedOne(keys, 0, {2}) == near(-0.2));
  CHECK(updatedOne(keys, 2, {0}, {.decay = 0.2}) == near(2 - 0.1 * 0.4));
  CHECK(updatedOne("kind = \"lars\", trust_ratio = 0.5, epsilon = 8", 2, {2}) ==
        near(2 - 0.1 * 0.1 * 2));
}

TEST_CASE("muon: gives values computed by hand") {
  auto keys = "kind = \"muon\", steps = 1, scale = \"none\""_kj;
  // A matrix of one value is 1 when normalised, and one step makes it a + b + c.
  constexpr double STEP = 3.4445 - 4.7750 + 2.0315;
  CHECK(updatedOne(keys, 2, {5}) == near(2 - 0.1 * STEP));
  CHECK(updatedOne(keys, 2, {-5}) == near(2 + 0.1 * STEP));
  CHECK(updatedOne(keys, 2, {5}, {.decay = 0.5}) == near(2 * 0.95 - 0.1 * STEP));
  CHECK(updatedOne(kj::str(keys, ", normalise = true"), 2, {5}) == near(1 - 0.1 * STEP));
  // The momentum keeps the sign of 4 · 0.95 - 3, and Nesterov's form of -3 + 0.95 · 0.8 does not.
  CHECK(updatedOne(kj::str(keys, ", nesterov = false"), 2, {4, -3}) == near(2 - 0.2 * STEP));
  CHECK(updatedOne(keys, 2, {4, -3}) == near(2));

  // Four rows, one column: the direction of the gradient.
  float zeros[] = {0, 0, 0, 0};
  auto gradients = kj::heapArray<kj::Array<float>>(1);
  gradients[0] = kj::heapArray<float>({0, 3, 0, 4});
  struct {
    kj::StringPtr scale;
    double by;
  } rows[] = {{"none", 1}, {"aspect", 2}, {"rms", 0.4}};
  for (auto& row: rows) {
    auto scaled = kj::str("kind = \"muon\", steps = 1, scale = \"", row.scale, "\"");
    auto weights = updated(scaled, zeros, gradients, {.rows = 4});
    CHECK(weights[0] == 0);
    CHECK(weights[1] == near(-0.1 * row.by * STEP * 0.6));
    CHECK(weights[3] == near(-0.1 * row.by * STEP * 0.8));
  }
}

// ---------------------------------------------------------------------------------------------
// Many updates beside plain loops in double.

constexpr size_t ROWS = 6, SIZE = 6 * 37;
constexpr uint UPDATES = 20;
constexpr double RATE = 0.1, DECAY = 0.01, RESCALE = 0.25;

struct State {
  double a[SIZE] = {}, b[SIZE] = {}, c[SIZE] = {};
};
using Rule = void(double* w, const double* g, State& state, uint t);

kj::Array<float> drawn(uint64_t seed) {
  configs::Random random(seed, configs::Purpose::INITIAL_VALUES);
  auto result = kj::heapArray<float>(SIZE);
  for (float& value: result) value = float(random.normal());
  return result;
}

// Returns the largest difference after 20 updates, of values of size 1.
double distance(kj::StringPtr keys, Rule rule, bool asMxnet) {
  auto first = drawn(100);
  kj::Vector<kj::Array<float>> gradients;
  for (uint t = 0; t < UPDATES; ++t) gradients.add(drawn(t));
  auto got = updated(
      keys, first, gradients, {.decay = DECAY, .rescale = float(RESCALE), .rows = ROWS}, asMxnet);
  double w[SIZE], g[SIZE];
  State state;
  for (size_t i = 0; i < SIZE; ++i) w[i] = first[i];
  for (uint t = 0; t < UPDATES; ++t) {
    for (size_t i = 0; i < SIZE; ++i) g[i] = RESCALE * gradients[t][i];
    rule(w, g, state, t + 1);
  }
  double largest = 0, moved = 0;
  for (size_t i = 0; i < SIZE; ++i) {
    largest = std::max(largest, std::abs(w[i] - got[i]));
    moved = std::max(moved, std::abs(w[i] - first[i]));
  }
  CHECK(moved > 0.05);
  return largest;
}

double lengthOf(const double* values) {
  double sum = 0;
  for (size_t i = 0; i < SIZE; ++i) sum += values[i] * values[i];
  return std::sqrt(sum);
}

void nesterov(double* w, const double* g, State& state, uint) {
  for (size_t i = 0; i < SIZE; ++i) {
    double slope = g[i] + DECAY * w[i];
    state.a[i] = 0.9 * state.a[i] + slope;
    w[i] -= RATE * (slope + 0.9 * state.a[i]);
  }
}

void adamw(double* w, const double* g, State& state, uint t) {
  for (size_t i = 0; i < SIZE; ++i) {
    state.a[i] = 0.9 * state.a[i] + 0.1 * g[i];
    state.b[i] = 0.999 * state.b[i] + 0.001 * g[i] * g[i];
    double mean = state.a[i] / (1 - std::pow(0.9, t));
    double square = state.b[i] / (1 - std::pow(0.999, t));
    w[i] = w[i] * (1 - RATE * DECAY) - RATE * mean / (std::sqrt(square) + 1e-3);
  }
}

void adamAsPytorch(double* w, const double* g, State& state, uint t) {
  for (size_t i = 0; i < SIZE; ++i) {
    double slope = g[i] + DECAY * w[i];
    state.a[i] = 0.9 * state.a[i] + 0.1 * slope;
    state.b[i] = 0.999 * state.b[i] + 0.001 * slope * slope;
    double mean = state.a[i] / (1 - std::pow(0.9, t));
    double square = state.b[i] / (1 - std::pow(0.999, t));
    w[i] -= RATE * mean / (std::sqrt(square) + 0.1);
  }
}

void rmspropAsPytorch(double* w, const double* g, State& state, uint) {
  for (size_t i = 0; i < SIZE; ++i) {
    double slope = g[i] + DECAY * w[i];
    state.a[i] = 0.9 * state.a[i] + 0.1 * slope * slope;
    state.b[i] = 0.9 * state.b[i] + 0.1 * slope;
    double root = std::sqrt(state.a[i] - state.b[i] * state.b[i]) + 0.1;
    state.c[i] = 0.8 * state.c[i] + slope / root;
    w[i] -= RATE * state.c[i];
  }
}

void rmspropAsTensorflow(double* w, const double* g, State& state, uint) {
  for (size_t i = 0; i < SIZE; ++i) {
    double slope = g[i] + DECAY * w[i];
    state.a[i] = 0.9 * state.a[i] + 0.1 * slope * slope;
    state.c[i] = 0.8 * state.c[i] + RATE * slope / std::sqrt(state.a[i] + 0.1);
    w[i] -= state.c[i];
  }
}

void lars(double* w, const double* g, State& state, uint) {
  double length = lengthOf(w);
  double trust = 0.2 * length / (lengthOf(g) + DECAY * length);
  for (size_t i = 0; i < SIZE; ++i) {
    state.a[i] = 0.9 * state.a[i] + RATE * trust * (g[i] + DECAY * w[i]);
    w[i] -= state.a[i];
  }
}

void muonAsAirbench(double* w, const double* g, State& state, uint) {
  constexpr size_t COLS = SIZE / ROWS;
  double x[SIZE];
  for (size_t i = 0; i < SIZE; ++i) {
    state.a[i] = 0.6 * state.a[i] + g[i];
    x[i] = g[i] + 0.6 * state.a[i];
  }
  double length = lengthOf(x);
  for (double& value: x) value /= length;
  for (uint step = 0; step < 3; ++step) {
    double gram[ROWS][ROWS] = {}, factor[ROWS][ROWS] = {}, more[SIZE] = {};
    for (size_t i = 0; i < ROWS; ++i) {
      for (size_t j = 0; j < ROWS; ++j) {
        for (size_t l = 0; l < COLS; ++l) gram[i][j] += x[i * COLS + l] * x[j * COLS + l];
      }
    }
    for (size_t i = 0; i < ROWS; ++i) {
      for (size_t j = 0; j < ROWS; ++j) {
        factor[i][j] = -4.7750 * gram[i][j];
        for (size_t l = 0; l < ROWS; ++l) factor[i][j] += 2.0315 * gram[i][l] * gram[l][j];
      }
    }
    for (size_t i = 0; i < SIZE; ++i) {
      more[i] = 3.4445 * x[i];
      for (size_t l = 0; l < ROWS; ++l) more[i] += factor[i / COLS][l] * x[l * COLS + i % COLS];
    }
    std::copy(more, more + SIZE, x);
  }
  double keep = (1 - RATE * DECAY) * std::sqrt(double(ROWS)) / lengthOf(w);
  for (size_t i = 0; i < SIZE; ++i) w[i] = keep * w[i] - RATE * x[i];
}

TEST_CASE("every optimizer stays close to its formula in double for 20 updates") {
  struct {
    kj::StringPtr keys;
    Rule& rule;
    bool asMxnet;
  } rows[] = {
      {"kind = \"sgd\", momentum = 0.9, nesterov = true", nesterov, false},
      {"kind = \"sgd\", momentum = 0.9, nesterov = true", nesterov, true},
      {"kind = \"adamw\", epsilon = 1e-3", adamw, false},
      {"kind = \"adamw\", epsilon = 1e-3", adamw, true},
      {"kind = \"adam\", epsilon = 0.1", adamAsPytorch, false},
      {"kind = \"rmsprop\", epsilon = 0.1, momentum = 0.8, centered = true", rmspropAsPytorch,
          false},
      {"kind = \"rmsprop\", epsilon = 0.1, momentum = 0.8", rmspropAsTensorflow, true},
      {"kind = \"lars\", trust_ratio = 0.2", lars, true},
      {"kind = \"muon\", momentum = 0.6, steps = 3, scale = \"none\", normalise = true",
          muonAsAirbench, true},
  };
  for (auto& row: rows) {
    CAPTURE(row.keys.cStr());
    CHECK(distance(row.keys, row.rule, row.asMxnet) < 2e-5);
  }
}

TEST_CASE("lars and muon need whole keys, and muon updates weights only") {
  struct {
    kj::StringPtr kind;
    bool wholeKeys, weightsAlone;
  } rows[] = {{"sgd", false, false}, {"adam", false, false}, {"adamw", false, false},
      {"rmsprop", false, false}, {"lars", true, false}, {"muon", true, true}};
  for (auto& row: rows) {
    Read read(kj::str("kind = \"", row.kind, "\""));
    CHECK(read.optimizer->name() == row.kind);
    CHECK(read.optimizer->needsWholeKeys() == row.wholeKeys);
    CHECK(read.optimizer->isForWeightsAlone() == row.weightsAlone);
  }
}

}  // namespace
}  // namespace nn
