#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

#include <cmath>

#include "nn/cuda/testing/host_kernels.h"
#include "nn/cuda/testing/test_rows.h"

namespace nn::cuda {
namespace {

constexpr float EPSILON = 1e-3f, MOMENTUM = 0.9f;

// Returns NaNs, as in new memory of a device.
kj::Array<float> room(size_t count) {
  auto floats = kj::heapArray<float>(count);
  memset(floats.begin(), 0xff, floats.asBytes().size());
  return floats;
}

// A batch norm's own arrays, and its statistics of a batch.
struct Norm {
  BatchNorm op{EPSILON, MOMENTUM, false};
  uint channels;
  const float* bias = nullptr;  // not added to x
  kj::Array<float> parameters, movingMean, movingVariance, arrays, partial;
  NormArrays norm;

  Norm(View x, bool fixedGamma)
      : op{EPSILON, MOMENTUM, fixedGamma},
        channels(x.channels),
        parameters(drawFloats(5, 2 * x.channels)),
        movingMean(drawFloats(6, x.channels)),
        movingVariance(drawFloats(7, x.channels)),
        arrays(room(4 * x.width)),
        partial(room(size_t(PARTIAL_ROWS) * 2 * x.width)) {
    auto start = arrays.begin();
    norm = {start, start + x.width, start + 2 * x.width, start + 3 * x.width};
  }
  const float* gamma() const { return op.fixedGamma ? nullptr : parameters.begin(); }
  const float* beta() const { return parameters.begin() + channels; }

  void measure(Element element, View x, Order order = Order::ASCENDING) {
    runOnHost(SumMoments{element, x, partial.begin()}, order);
    finish(element, x, order);
  }
  void finish(Element element, View x, Order order = Order::ASCENDING) {
    runOnHost(FinishMoments{element, x, partial.begin(), gamma(), beta(), bias, movingMean.begin(),
                  movingVariance.begin(), EPSILON, MOMENTUM, norm},
        order);
  }
};

// A row's function, and whether it has a residual, which is then its second input. dy is the last
// input.
struct Variant {
  Function function;
  bool hasResidual;
  bool fixedGamma;

  kj::String name(kj::StringPtr of) const {
    return kj::str(of, ' ', nameOf(function), hasResidual ? " residual" : "",
        fixedGamma ? " fixed gamma" : "");
  }
  View residual(const Trial& t) const { return hasResidual ? t.inputs[1].view() : View(); }
  View dy(const Trial& t) const { return t.inputs[hasResidual ? 2 : 1].view(); }

  // What `function` is applied to.
  Tensor before(const Trial& t) const {
    Norm norm(t.inputs[0].view(), fixedGamma);
    Tensor u(t.images, t.shape);
    reference::forward(norm.op, t.values[0], reference::momentsOf(t.values[0]), norm.parameters, u);
    if (hasResidual) addTo(u, t.values[1]);
    return u;
  }
  Tensor slope(const Trial& t) const {
    Tensor g(t.images, t.shape);
    for (double& value: g.values) value = 0;
    addSlope(function, before(t), t.values[hasResidual ? 2 : 1], g);
    return g;
  }
};

Row normalizing(Variant variant) {
  auto run = [=](const Trial& t) {
    auto x = t.inputs[0].view();
    Norm norm(x, variant.fixedGamma);
    norm.measure(t.element, x, t.order);
    t.run(Normalize{t.element, variant.function, x, norm.norm.scale, norm.norm.shift,
        variant.residual(t), t.output.view()});
  };
  auto expect = [=](const Trial& t, Tensor& y) {
    addActivated(variant.function, variant.before(t), y);
  };
  return {
      variant.name("normalize"), variant.hasResidual ? 2u : 1u, false, kj::mv(run), kj::mv(expect)};
}

// Computes the gradient of x, and checks the gradients of the parameters.
Row normalizingBackward(Variant variant) {
  auto run = [=](const Trial& t) {
    auto x = t.inputs[0].view();
    Norm norm(x, variant.fixedGamma);
    norm.measure(t.element, x, t.order);
    auto residual = variant.residual(t), dy = variant.dy(t);
    t.run(SumSlopes{
        t.element, variant.function, x, residual, dy, norm.norm, norm.partial.begin(), {}, false});
    auto gradients = room(2 * x.channels), coefficients = room(3 * x.width);
    t.run(FinishSlopes{x.pixels, x.channels, x.width, norm.partial.begin(), norm.norm,
        variant.fixedGamma ? nullptr : gradients.begin(), gradients.begin() + x.channels, 0.5,
        coefficients.begin()});
    t.run(NormalizeBackward{t.element, variant.function, x, residual, dy, norm.norm,
        coefficients.begin(), t.output.view(), t.adds});

    auto expected = kj::heapArray<double>(2 * x.channels);
    for (double& value: expected) value = 0;
    Tensor unused(t.images, t.shape);
    reference::backward(norm.op, t.values[0], norm.parameters, variant.slope(t), unused, expected);
    for (uint i = variant.fixedGamma ? x.channels : 0; i < 2 * x.channels; ++i) {
      double error = std::abs(gradients[i] - 0.5 * expected[i]);
      KJ_REQUIRE(error <= 1e-5 * (1 + std::abs(expected[i])), i, gradients[i], expected[i]);
    }
  };
  auto expect = [=](const Trial& t, Tensor& dx) {
    Norm norm(t.inputs[0].view(), variant.fixedGamma);
    auto unused = kj::heapArray<double>(2 * t.shape.channels);
    for (double& value: unused) value = 0;
    reference::backward(norm.op, t.values[0], norm.parameters, variant.slope(t), dx, unused);
  };
  return {variant.name("normalize_backward"), variant.hasResidual ? 3u : 2u, true, kj::mv(run),
      kj::mv(expect)};
}

// The residual's gradient.
Row residualBackward(Variant variant) {
  auto run = [=](const Trial& t) {
    auto x = t.inputs[0].view();
    Norm norm(x, variant.fixedGamma);
    norm.measure(t.element, x, t.order);
    t.run(SumSlopes{t.element, variant.function, x, variant.residual(t), variant.dy(t), norm.norm,
        norm.partial.begin(), t.output.view(), t.adds});
  };
  auto expect = [=](const Trial& t, Tensor& dx) { addTo(dx, variant.slope(t)); };
  return {variant.name("sum_slopes"), 3, true, kj::mv(run), kj::mv(expect)};
}

TEST_CASE("norms: forward and backward agree with plain loops, with residuals and activations") {
  kj::Vector<Row> rows;
  for (auto function: {Function::NONE, Function::RELU, Function::TANH, Function::GELU}) {
    rows.add(normalizing({function, false, false}));
    rows.add(normalizingBackward({function, true, false}));
    rows.add(residualBackward({function, true, false}));
  }
  rows.add(normalizing({Function::RELU, true, true}));
  rows.add(normalizingBackward({Function::NONE, false, true}));
  for (auto& row: rows) row.error = 1e-5;  // divides by deviations of float sums
  checkRows(rows);
}

TEST_CASE("norms: channels far from 0 keep their variance, and a constant channel has variance 0") {
  constexpr uint CHANNELS = 70;  // more than a block finishes
  for (uint images: {3, 400}) {
    auto values = drawTensor(1, images, {CHANNELS, 3, 3}, 1, 3000);
    for (uint n = 0; n < images; ++n) {
      for (uint i = 0; i < 9; ++i) values.at(n, 7, i / 3, i % 3) = 1e4 / 3;
    }
    Batch x(Element::FLOAT32, Form::PADDED, values);
    auto moments = reference::momentsOf(x.values());
    Norm norm(x.view(), false);
    auto means = drawFloats(6, CHANNELS), variances = drawFloats(7, CHANNELS);
    norm.measure(Element::FLOAT32, x.view());
    for (uint c = 0; c < CHANNELS; ++c) {
      double mean = moments[c], variance = moments[CHANNELS + c];
      CHECK(norm.norm.mean[c] == doctest::Approx(mean).epsilon(1e-7));
      CHECK(norm.norm.deviation[c] ==
            doctest::Approx(1 / std::sqrt(variance + EPSILON)).epsilon(1e-5));
      CHECK(norm.movingMean[c] == doctest::Approx(0.9 * means[c] + 0.1 * mean).epsilon(1e-6));
      CHECK(norm.movingVariance[c] ==
            doctest::Approx(0.9 * variances[c] + 0.1 * variance).epsilon(1e-5));
    }
    CHECK(norm.movingVariance[7] == MOMENTUM * variances[7]);
    for (float* array: {norm.norm.scale, norm.norm.shift, norm.norm.mean, norm.norm.deviation}) {
      for (uint c = CHANNELS; c < x.view().width; ++c) CHECK(array[c] == 0);
    }
  }
}

TEST_CASE("norms: a variance that rounding takes below 0 becomes 0") {
  Batch x(Element::FLOAT32, Form::PADDED, drawTensor(1, 3, {1}));
  Norm norm(x.view(), false);
  for (float& value: norm.partial) value = 0;
  norm.partial[0] = 3;      // of 3 values 1 above the first
  norm.partial[1] = 2.99f;  // and of their squares
  float before = norm.movingVariance[0];
  norm.finish(Element::FLOAT32, x.view());
  CHECK(norm.norm.deviation[0] == doctest::Approx(1 / std::sqrt(EPSILON)));
  CHECK(norm.movingVariance[0] == MOMENTUM * before);
}

TEST_CASE("norms: the scale and shift of validation come from the moving statistics") {
  constexpr uint CHANNELS = 300, WIDTH = 304;
  auto gamma = drawFloats(1, CHANNELS), beta = drawFloats(2, CHANNELS);
  auto mean = drawFloats(3, CHANNELS), variance = drawFloats(4, CHANNELS);
  for (float& value: variance) value *= value;
  for (bool fixedGamma: {false, true}) {
    auto scale = room(WIDTH), shift = room(WIDTH);
    runOnHost(FoldMoments{CHANNELS, WIDTH, fixedGamma ? nullptr : gamma.begin(), beta.begin(),
        nullptr, mean.begin(), variance.begin(), EPSILON, {scale.begin(), shift.begin()}});
    for (uint c = 0; c < CHANNELS; ++c) {
      double expected = (fixedGamma ? 1 : gamma[c]) / std::sqrt(double(variance[c]) + EPSILON);
      CHECK(scale[c] == doctest::Approx(expected).epsilon(1e-6));
      CHECK(std::abs(shift[c] - (beta[c] - mean[c] * expected)) < 1e-5);
    }
    for (uint c = CHANNELS; c < WIDTH; ++c) CHECK((scale[c] == 0 && shift[c] == 0));
  }
}

TEST_CASE("norms: a bias that the input lacks counts in the moving mean alone") {
  constexpr uint CHANNELS = 5;
  Batch x(Element::FLOAT32, Form::PADDED, drawTensor(1, 30, {CHANNELS}));
  auto bias = drawFloats(8, CHANNELS);
  Norm without(x.view(), false), with(x.view(), false);
  with.bias = bias.begin();
  without.measure(Element::FLOAT32, x.view());
  with.measure(Element::FLOAT32, x.view());
  CHECK(with.arrays.asPtr().slice(0, CHANNELS) == without.arrays.asPtr().slice(0, CHANNELS));
  for (uint c = 0; c < CHANNELS; ++c) {
    CHECK(with.norm.shift[c] == without.norm.shift[c]);
    CHECK(with.movingVariance[c] == without.movingVariance[c]);
    CHECK(with.movingMean[c] ==
          doctest::Approx(without.movingMean[c] + (1 - MOMENTUM) * bias[c]).epsilon(1e-6));
  }
  // Validation: x + bias, less the moving mean.
  auto scale = room(CHANNELS), shift = room(CHANNELS);
  for (float& value: with.movingVariance) value *= value;
  runOnHost(FoldMoments{CHANNELS, CHANNELS, with.gamma(), with.beta(), bias.begin(),
      with.movingMean.begin(), with.movingVariance.begin(), EPSILON,
      {scale.begin(), shift.begin()}});
  for (uint c = 0; c < CHANNELS; ++c) {
    double expected = with.beta()[c] + (bias[c] - with.movingMean[c]) * double(scale[c]);
    CHECK(std::abs(shift[c] - expected) < 1e-5);
  }
}

TEST_CASE("biases: gradients are sums over all pixels") {
  struct {
    uint channels, images;
  } sizes[] = {{5, 1}, {64, 40}, {700, 300}, {64, 10000}, {5, 50000}};
  // Fewer pixels than parts, so that the last part has none. More packs than a tile has lanes. More
  // pixels in a part than it has rows.
  for (auto size: sizes) {
    Shape shape{size.channels, 1, 3};
    auto drawn = drawTensor(1, size.images, shape);
    for (auto element: {Element::FLOAT32, Element::BFLOAT16, Element::FLOAT16}) {
      for (auto form: {Form::PADDED, Form::PART, Form::ALIGNED_PART}) {
        Batch dy(element, form, drawn);
        auto view = dy.view();
        auto sum = [&](Order order) {
          auto partial = room(size_t(PARTIAL_ROWS) * 2 * view.width), to = room(size.channels + 1);
          runOnHost(SumColumns{element, view, partial.begin()}, order);
          runOnHost(
              FinishColumns{size.channels, view.width, partial.begin(), to.begin(), 0.5}, order);
          return to;
        };
        auto to = sum(Order::ASCENDING), again = sum(Order::DESCENDING);
        auto values = dy.values();
        for (uint c = 0; c < size.channels; ++c) {
          double expected = 0;
          for (uint i = 0; i < view.pixels; ++i) expected += values.at(i / 3, c, 0, i % 3) / 2;
          REQUIRE(std::abs(to[c] - expected) < 1e-7 * view.pixels + 1e-6);
          REQUIRE(again[c] == to[c]);
        }
        CHECK(std::isnan(to[size.channels]));
      }
    }
  }
}

}  // namespace
}  // namespace nn::cuda
