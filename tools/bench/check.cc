#include "tools/bench/check.h"

#include <math.h>

#include "configs/language/failure.h"

namespace tools {
namespace {

using Values = kj::ArrayPtr<const float>;

double lengthOf(Values values) {
  double squares = 0;
  for (double value: values) squares += value * value;
  return sqrt(squares);
}

double distance(Values a, Values b) {
  double squares = 0;
  for (size_t i: kj::indices(a)) {
    double difference = double(a[i]) - b[i];
    squares += difference * difference;
  }
  return sqrt(squares);
}

// `length` is the unit in which the difference is measured.
void requireSame(
    kj::StringPtr what, Values found, Values expected, double length, double tolerance) {
  double difference = distance(found, expected);
  // This comparison is false for a NaN, which therefore counts as an error.
  if (difference <= tolerance * length) return;
  configs::fail("the cpu program's ", what, " differ from the reference implementation's by ",
      difference / length, " of their length, more than the allowed ", tolerance,
      ". Nothing was measured. --no-check skips this comparison");
}

}  // namespace

CheckTolerance checkToleranceOf(nn::Precision precision) {
  // If rounding moves one value over the edge of a ReLU, or past another maximum, a gradient
  // changes. Measured are 4e-5 for resnet-56, but 2e-2 for the first arrays of inception-bn. In
  // bf16 many values move: up to 6e-2 of the logits (resnet-50), and more than the whole gradient
  // for the first arrays of resnet-56. There tests/ops compares each op separately.
  bool mayBeBf16 = precision == nn::Precision::BF16 || precision == nn::Precision::AUTO;
  if (mayBeBf16) return {.logits = 1e-1, .gradient = nullptr};
  return {.logits = 1e-3, .gradient = 5e-2};
}

void requireSameLogits(
    nn::Program& program, nn::Program& reference, double tolerance, nn::Phase phase) {
  Values expected = reference.logits();
  Values found = program.logits().slice(0, expected.size());
  requireSame(phase == nn::Phase::TRAIN ? "logits in training" : "logits in validation", found,
      expected, lengthOf(expected), tolerance);
}

void requireSameGradients(
    const nn::Graph& graph, nn::Program& program, nn::Program& reference, double tolerance) {
  double least = 0.01 * lengthOf(reference.gradients());
  for (auto& key: graph.keys) {
    auto part = [&](Values all) { return all.slice(key.offset, key.offset + key.size); };
    auto expected = part(reference.gradients());
    requireSame(kj::str("gradients of ", key.name), part(program.gradients()), expected,
        kj::max(lengthOf(expected), least), tolerance);
  }
}

}  // namespace tools
