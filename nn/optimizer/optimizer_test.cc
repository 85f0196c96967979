#include "nn/optimizer/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "configs/language/random.h"

namespace nn {
namespace {

struct Read {
  configs::Diagnostics diagnostics;
  kj::Own<configs::Document> document;
  kj::Own<const Optimizer> optimizer;

  explicit Read(kj::StringPtr text, Conventions conventions = CONVENTIONS[0])
      : conventions(conventions) {
    document = configs::parse("x.toml", text, diagnostics);
    configs::Reading reading{diagnostics, {}};
    optimizer = configs::readDocument(*document, reading, [this](configs::Reader& reader) {
      return readOptimizer(reader, "optimizer", this->conventions);
    });
  }

private:
  Conventions conventions;
};

// Not a multiple of any vector length, so that the remainder is run too.
constexpr size_t SIZE = 1003;

struct Arrays {
  kj::Array<float> gradient = drawn(1), current = drawn(2), state = drawn(3),
                   next = kj::heapArray<float>(SIZE);

  static kj::Array<float> drawn(uint64_t seed) {
    configs::Random random(seed, configs::Purpose::INITIAL_VALUES);
    auto result = kj::heapArray<float>(SIZE);
    for (float& value: result) value = float(random.normal());
    return result;
  }
  SliceUpdate update(kj::ArrayPtr<float> state) {
    return {.gradient = gradient,
        .rescale = 1.0f / 96,
        .current = current,
        .next = next,
        .state = state,
        .learningRate = 0.1,
        .decay = 1e-4};
  }
};

// One element of the formula, every operation rounded; volatile keeps the compiler from vectorising
// or fusing it.
float rounded(float value) {
  volatile float kept = value;
  return kept;
}
float product(float a, float b) {
  return rounded(a * b);
}

float slope(const Arrays& arrays, size_t i) {
  return rounded(product(1.0f / 96, arrays.gradient[i]) + product(1e-4f, arrays.current[i]));
}

bool sameBits(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  return a.size() == b.size() && memcmp(a.begin(), b.begin(), a.size() * sizeof(float)) == 0;
}

TEST_CASE(
    "Optimizer: sgd with momentum gives the bits of the scalar formula, with the rate inside") {
  Read read(
      "optimizer = { kind = \"sgd\", learning_rate = 0.1, momentum = 0.9, weight_decay = 1e-4 }");
  REQUIRE(read.diagnostics.count() == 0);
  CHECK(read.optimizer->name() == "sgd");
  CHECK(read.optimizer->stateArrays() == 1);
  CHECK(read.optimizer->learningRate() == 0.1);
  CHECK(read.optimizer->weightDecay() == 1e-4);

  Arrays arrays;
  auto expected = kj::heapArray<float>(SIZE), expectedState = kj::heapArray<float>(SIZE);
  for (size_t i = 0; i < SIZE; ++i) {
    expectedState[i] = rounded(product(0.9f, arrays.state[i]) - product(0.1f, slope(arrays, i)));
    expected[i] = rounded(arrays.current[i] + expectedState[i]);
  }
  read.optimizer->apply(arrays.update(arrays.state));
  CHECK(sameBits(arrays.next, expected));
  CHECK(sameBits(arrays.state, expectedState));
}

TEST_CASE("Optimizer: the learning rate multiplies the momentum if the conventions say so") {
  Conventions conventions = CONVENTIONS[0];
  conventions.learningRateInsideMomentum = false;
  Read read("optimizer = { kind = \"sgd\", momentum = 0.9 }", conventions);
  Arrays arrays;
  auto expected = kj::heapArray<float>(SIZE);
  for (size_t i = 0; i < SIZE; ++i) {
    float state = rounded(product(0.9f, arrays.state[i]) + slope(arrays, i));
    expected[i] = rounded(arrays.current[i] - product(0.1f, state));
  }
  read.optimizer->apply(arrays.update(arrays.state));
  CHECK(sameBits(arrays.next, expected));
}

TEST_CASE("Optimizer: sgd without momentum keeps no state") {
  Read read("optimizer = { kind = \"sgd\" }");
  CHECK(read.optimizer->stateArrays() == 0);
  Arrays arrays;
  auto expected = kj::heapArray<float>(SIZE);
  for (size_t i = 0; i < SIZE; ++i) {
    expected[i] = rounded(arrays.current[i] - product(0.1f, slope(arrays, i)));
  }
  read.optimizer->apply(arrays.update(nullptr));
  CHECK(sameBits(arrays.next, expected));
}

TEST_CASE("Optimizer: a slice in two pieces gets the bits of the whole") {
  Read read("optimizer = { kind = \"sgd\", momentum = 0.9 }");
  Arrays whole, pieces;
  read.optimizer->apply(whole.update(whole.state));
  for (size_t begin: {size_t(0), size_t(333)}) {
    size_t end = begin == 0 ? 333 : SIZE;
    auto update = pieces.update(pieces.state.slice(begin, end));
    update.gradient = update.gradient.slice(begin, end);
    update.current = update.current.slice(begin, end);
    update.next = pieces.next.slice(begin, end);
    read.optimizer->apply(kj::mv(update));
  }
  CHECK(sameBits(whole.next, pieces.next));
  CHECK(sameBits(whole.state, pieces.state));
}

// The square root, rounded to float32.
float root(float square) {
  return rounded(std::sqrt(square));
}

TEST_CASE(
    "Optimizer: adam gives the bits of the scalar formula, with its corrections in the rate") {
  Read read("optimizer = { kind = \"adam\", beta1 = 0.75, epsilon = 1e-3, weight_decay = 1e-4 }");
  REQUIRE(read.diagnostics.count() == 0);
  CHECK(read.optimizer->name() == "adam");
  CHECK(read.optimizer->stateArrays() == 2);
  CHECK(read.optimizer->learningRate() == 0.001);
  CHECK(read.optimizer->weightDecay() == 1e-4);

  Arrays arrays;
  auto state = kj::heapArray<float>(2 * SIZE), expectedState = kj::heapArray<float>(2 * SIZE);
  auto expected = kj::heapArray<float>(SIZE);
  for (float& value: state) value = 0;
  for (size_t i = 0; i < SIZE; ++i) state[SIZE + i] = rounded(arrays.state[i] * arrays.state[i]);
  auto update = arrays.update(state);
  update.number = 2;
  // Of the third update.
  double rate = 0.1 * std::sqrt(1 - 0.999 * 0.999 * 0.999) / (1 - 0.75 * 0.75 * 0.75);
  for (size_t i = 0; i < SIZE; ++i) {
    float g = slope(arrays, i);
    float rest = float(1 - 0.999);
    expectedState[i] = rounded(product(0.75f, state[i]) + product(0.25f, g));
    expectedState[SIZE + i] =
        rounded(product(0.999f, state[SIZE + i]) + product(rest, product(g, g)));
    float below = rounded(root(expectedState[SIZE + i]) + 1e-3f);
    float move = rounded(product(float(rate), expectedState[i]) / below);
    expected[i] = rounded(arrays.current[i] - move);
  }
  read.optimizer->apply(kj::mv(update));
  CHECK(sameBits(arrays.next, expected));
  CHECK(sameBits(state, expectedState));
}

TEST_CASE("Optimizer: adam's first step has the size of the learning rate, whatever the gradient") {
  // Except for epsilon, which matters next to the smallest gradients.
  for (auto betas: {"beta2 = 0.999"_kj, "beta2 = 0.9999999"_kj, "beta1 = 0.9999999"_kj}) {
    CAPTURE(betas.cStr());
    Read read(kj::str("optimizer = { kind = \"adam\", epsilon = 1e-12, ", betas, " }"));
    Arrays arrays;
    auto state = kj::heapArray<float>(2 * SIZE);
    for (float& value: state) value = 0;
    auto update = arrays.update(state);
    update.decay = 0;
    read.optimizer->apply(kj::mv(update));
    for (size_t i = 0; i < SIZE; ++i) {
      float move = arrays.current[i] - arrays.next[i];
      CHECK(std::abs(move) == doctest::Approx(0.1).epsilon(1e-3));
      CHECK((move > 0) == (arrays.gradient[i] > 0));
    }
  }
}

TEST_CASE("Optimizer: the first step of rmsprop is the rate divided by sqrt(1 - smoothing)") {
  for (auto centered: {"false", "true"}) {
    Read read(
        kj::str("optimizer = { kind = \"rmsprop\", smoothing = 0.9999999, epsilon = 1e-12, "
                "epsilon_below_root = false, centered = ",
            centered, " }"));
    Arrays arrays;
    auto state = kj::heapArray<float>(read.optimizer->stateArrays() * SIZE);
    for (float& value: state) value = 0;
    auto update = arrays.update(state);
    update.decay = 0;
    read.optimizer->apply(kj::mv(update));
    for (size_t i = 0; i < SIZE; ++i) {
      float move = arrays.current[i] - arrays.next[i];
      CHECK(std::abs(move) == doctest::Approx(0.1 / std::sqrt(1e-7)).epsilon(1e-3));
    }
  }
}

TEST_CASE("Optimizer: sgd is the default, and a momentum of 1 is refused") {
  CHECK(Read("").optimizer->name() == "sgd");
  CHECK(Read("optimizer = { kind = \"sgd\", momentum = 1 }").diagnostics.count() == 1);
}

}  // namespace
}  // namespace nn
