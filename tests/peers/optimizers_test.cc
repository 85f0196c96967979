// Our optimizers beside PyTorch's, for 20 updates with the same gradients.
#include "nn/optimizer/optimizer.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "configs/language/random.h"
#include "tests/command.h"
#include "tests/peers/torch.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr size_t ROWS = 8, COLS = 27, SIZE = ROWS * COLS, UPDATES = 20;

// The optimizers of optimizers.py, in its order.
constexpr kj::StringPtr RULES[] = {
    "kind = \"sgd\", momentum = 0.9"_kj,
    "kind = \"sgd\", momentum = 0.9, nesterov = true"_kj,
    "kind = \"adam\", epsilon = 1e-3"_kj,
    "kind = \"adamw\", epsilon = 1e-3"_kj,
    "kind = \"rmsprop\", smoothing = 0.9, epsilon = 0.1"_kj,
    "kind = \"rmsprop\", smoothing = 0.9, epsilon = 0.1, momentum = 0.8, centered = true"_kj,
};

// A matrix of first values, and one of gradients for each update.
kj::Array<float> drawn() {
  configs::Random random(1, configs::Purpose::INITIAL_VALUES);
  auto result = kj::heapArray<float>((1 + UPDATES) * SIZE);
  for (float& value: result) value = float(random.normal());
  return result;
}

kj::Array<float> updated(kj::StringPtr keys, kj::ArrayPtr<const float> inputs) {
  nn::Conventions conventions = nn::CONVENTIONS[0];
  conventions.learningRateInsideMomentum = false;
  conventions.epsilonComesLast = true;
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", kj::str("optimizer = { ", keys, " }"), diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto rule = configs::readDocument(*document, reading,
      [&](configs::Reader& reader) { return nn::readOptimizer(reader, "optimizer", conventions); });
  REQUIRE(diagnostics.count() == 0);
  auto current = kj::heapArray<float>(inputs.slice(0, SIZE)), next = kj::heapArray<float>(SIZE);
  auto state = kj::heapArray<float>(SIZE * rule->stateArrays());
  for (float& value: state) value = 0;
  for (size_t t = 0; t < UPDATES; t++) {
    rule->apply({.gradient = inputs.slice((1 + t) * SIZE, (2 + t) * SIZE),
        .rescale = 1,
        .current = current,
        .next = next,
        .state = state,
        .learningRate = 0.1,
        .decay = 0.01,
        .number = t});
    std::swap(current, next);
  }
  return current;
}

TEST_CASE("sgd, adam, adamw and rmsprop stay close to PyTorch's for 20 updates") {
  auto python = torchPython();
  if (python == "") SKIP_CASE(NO_TORCH);
  auto inputs = drawn();
  auto folder = newFolder();
  auto source = kj::str(folder, "/in"), target = kj::str(folder, "/out");
  writeFile(source, kj::heapString(inputs.asPtr().asChars()));
  auto rows = kj::str(ROWS), cols = kj::str(COLS);
  auto ended = Command({python, "tests/peers/optimizers.py", source, rows, cols, target}).wait();
  INFO(ended.errors);
  REQUIRE(ended.exitCode == 0);
  auto text = readFile(target);
  REQUIRE(text.size() == kj::size(RULES) * SIZE * sizeof(float));
  auto expected = kj::heapArray<float>(kj::size(RULES) * SIZE);
  memcpy(expected.begin(), text.begin(), text.size());

  for (size_t r: kj::indices(RULES)) {
    CAPTURE(RULES[r]);
    auto got = updated(RULES[r], inputs);
    double largest = 0, moved = 0;
    for (size_t i = 0; i < SIZE; i++) {
      largest = std::max(largest, std::abs(double(got[i]) - expected[r * SIZE + i]));
      moved = std::max(moved, std::abs(double(got[i]) - inputs[i]));
    }
    MESSAGE(RULES[r], ": largest difference ", largest);
    // Each update rounds values of size 1. Adam's 1 - beta2 comes from float32's 0.999, as in
    // TensorFlow: it is off by 5e-5 of itself, and affects a step of 0.1.
    CHECK(largest < (RULES[r].startsWith("kind = \"adam") ? 5e-5 : 5e-6));
    CHECK(moved > 0.5);
  }
}

}  // namespace
}  // namespace tests
