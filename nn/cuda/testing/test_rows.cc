#include "nn/cuda/testing/test_rows.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cmath>

namespace nn::cuda {
namespace {

struct Forms {
  Form inputs, output;
};
constexpr Forms FORMS[] = {{Form::PADDED, Form::PADDED}, {Form::PART, Form::PADDED},
    {Form::PADDED, Form::PART}, {Form::ALIGNED_PART, Form::ALIGNED_PART}};

// Coarse values, so that there are equal ones among them.
Tensor drawCoarse(uint seed, uint images, Shape shape) {
  auto result = drawTensor(seed, images, shape);
  for (double& value: result.values) value = std::round(8 * value) / 8;
  return result;
}

void check(Row& row, Element element, Forms forms, Shape shape, uint images, bool adds) {
  Shape pooled = shape;
  KJ_IF_MAYBE(pool, row.pool) pooled = inferShape(*pool, kj::arrayPtr(&shape, 1));
  bool isPooled = row.pool != nullptr && row.inputs == 1;
  kj::Vector<Batch> inputs;
  kj::Vector<Tensor> values;
  for (uint i = 0; i < row.inputs; ++i) {
    inputs.add(element, forms.inputs, drawCoarse(i + 1, images, i == 1 ? pooled : shape));
    values.add(inputs.back().values());
  }
  Shape outputShape = isPooled ? pooled : shape;
  auto before = drawCoarse(9, images, outputShape);
  Tensor expected(images, outputShape);
  for (double& value: expected.values) value = 0;
  auto run = [&](Order order) {
    Batch output(element, forms.output, images, outputShape);
    Trial trial{element, shape, images, adds, values, inputs, output, order};
    if (order == Order::ASCENDING) row.expect(trial, expected);
    if (adds) output.fill(before);
    row.run(trial);
    return output.values();
  };
  auto result = run(Order::ASCENDING);
  if (adds) addTo(expected, before);

  INFO(doctest::String(kj::str(row.name, ": element ", uint(element), ", ", shape, ", forms ",
      uint(forms.inputs), ' ', uint(forms.output), adds ? ", adds" : "")
                           .cStr()));
  bool isFloat = element == Element::FLOAT32;
  double limit = row.error + (isFloat ? 1 : row.roundings) * roundingOf(element);
  CHECK(distance(result, expected) <= limit);
  CHECK(distance(run(Order::DESCENDING), result) == 0);
}

}  // namespace

void checkRows(kj::ArrayPtr<Row> rows) {
  for (auto& row: rows) {
    for (auto element: {Element::FLOAT32, Element::BFLOAT16, Element::FLOAT16}) {
      for (auto& forms: FORMS) {
        for (bool adds: {false, true}) {
          if (adds && !row.canAdd) continue;
          check(row, element, forms, {16, 7, 5}, 2, adds);
          check(row, element, forms, {5, 9, 11}, 3, adds);
        }
      }
    }
  }
}

kj::StringPtr nameOf(Function function) {
  constexpr const char* NAMES[] = {"none", "relu", "tanh", "sigmoid", "elu", "gelu"};
  return NAMES[uint(function)];
}

namespace {

Activation activationOf(Function function) {
  KJ_REQUIRE(function != Function::NONE);
  static_assert(uint(Function::RELU) == Activation::RELU + 1);
  static_assert(uint(Function::GELU) == Activation::GELU + 1);
  return {Activation::Function(uint(function) - 1)};
}

}  // namespace

void addActivated(Function function, const Tensor& u, Tensor& y) {
  if (function == Function::NONE) return addTo(y, u);
  Tensor more(u.images, u.shape);
  reference::forward(activationOf(function), u, more);
  addTo(y, more);
}

void addSlope(Function function, const Tensor& u, const Tensor& dy, Tensor& dx) {
  if (function == Function::NONE) return addTo(dx, dy);
  reference::backward(activationOf(function), u, dy, dx);
}

void addTo(Tensor& y, const Tensor& more) {
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] += more.values[i];
}

}  // namespace nn::cuda
