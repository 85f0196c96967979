#include <doctest/doctest.h>
#include <kj/debug.h>
#include <math.h>

#include "nn/cuda/kernel_bodies.h"
#include "nn/cuda/testing/host_kernels.h"
#include "nn/cuda/testing/test_rows.h"
#include "nn/dropout.h"

namespace nn::cuda {
namespace {

kj::Array<float> floatsOf(const Tensor& tensor) {
  return KJ_MAP(value, tensor.values) {
    return float(value);
  };
}

// ---- element by element

Row activation(Function function, bool isBiased) {
  auto run = [=](const Trial& t) {
    auto bias = drawFloats(3, t.shape.channels);
    t.run(Activate{t.element, function, t.inputs[0].view(), isBiased ? bias.begin() : nullptr,
        t.output.view()});
  };
  auto expect = [=](const Trial& t, Tensor& y) {
    auto bias = drawFloats(3, t.shape.channels);
    Tensor u(t.images, t.shape);
    size_t plane = size_t(t.shape.height) * t.shape.width;
    for (size_t i = 0; i < u.values.size(); ++i) {
      u.values[i] = t.values[0].values[i] + (isBiased ? bias[i / plane % t.shape.channels] : 0);
    }
    addActivated(function, u, y);
  };
  return {kj::str("activate ", nameOf(function), isBiased ? " with bias" : ""), 1, false,
      kj::mv(run), kj::mv(expect)};
}

Row activationInPlace() {
  auto run = [](const Trial& t) {
    t.output.fill(t.values[0]);
    t.run(Activate{t.element, Function::TANH, t.output.view(), nullptr, t.output.view()});
  };
  auto expect = [](const Trial& t, Tensor& y) { addActivated(Function::TANH, t.values[0], y); };
  return {kj::str("activate in place"), 1, false, kj::mv(run), kj::mv(expect)};
}

Row activationBackward(Function function) {
  auto run = [=](const Trial& t) {
    Tensor y(t.images, t.shape);
    for (double& value: y.values) value = 0;
    addActivated(function == Function::GELU ? Function::NONE : function, t.values[0], y);
    Batch from(t.element, Form::ALIGNED_PART, y);
    t.run(ActivateBackward{
        t.element, function, from.view(), t.inputs[1].view(), t.output.view(), t.adds});
  };
  auto expect = [=](const Trial& t, Tensor& dx) {
    addSlope(function, t.values[0], t.values[1], dx);
  };
  Row row{kj::str("activate_backward ", nameOf(function)), 2, true, kj::mv(run), kj::mv(expect)};
  row.roundings = 4;  // y is rounded too
  return row;
}

Row scaling() {
  auto run = [](const Trial& t) {
    t.run(ScaleBy{t.element, -1.5, t.inputs[0].view(), t.output.view(), t.adds});
  };
  auto expect = [](const Trial& t, Tensor& y) { reference::forward(Scale{-1.5}, t.values[0], y); };
  return {kj::str("scale_by"), 1, true, kj::mv(run), kj::mv(expect)};
}

Row droppingOut() {
  static constexpr uint64_t DRAWS[] = {7, 1234567, 2};
  static constexpr uint NODE = 5;
  static constexpr double RATE = 0.3;
  auto run = [](const Trial& t) {
    kj::Vector<DropoutMask> masks;
    for (uint n = 0; n < t.images; ++n) {
      masks.add(dropoutMask(RATE, DRAWS[n], NODE));
    }
    t.run(DropOut{
        t.element, masks.begin(), t.output.plane(), t.inputs[0].view(), t.output.view(), t.adds});
  };
  auto expect = [](const Trial& t, Tensor& y) {
    reference::forward(Dropout{RATE}, t.values[0], kj::arrayPtr(DRAWS, t.images), NODE, y);
  };
  return {kj::str("drop_out"), 1, true, kj::mv(run), kj::mv(expect)};
}

Row adding() {
  auto run = [](const Trial& t) {
    t.run(AddUp{t.element, t.inputs[0].view(), t.inputs[1].view(), t.output.view()});
  };
  auto expect = [](const Trial& t, Tensor& y) {
    addTo(y, t.values[0]);
    addTo(y, t.values[1]);
  };
  return {kj::str("add_up"), 2, false, kj::mv(run), kj::mv(expect)};
}

// ---- from and to the host's arrays

Row importing() {
  auto run = [](const Trial& t) {
    auto floats = floatsOf(t.values[0]);
    t.run(ImportPixels{t.element, floats.begin(), t.output.view(), t.output.plane()});
  };
  auto expect = [](const Trial& t, Tensor& y) { addTo(y, t.values[0]); };
  return {kj::str("import_pixels"), 1, false, kj::mv(run), kj::mv(expect)};
}

TEST_CASE("kernels: elementwise kernels agree with plain loops") {
  kj::Vector<Row> rows;
  for (auto function: FUNCTIONS) {
    rows.add(activation(function, false));
    rows.add(activation(function, true));
    rows.add(activationBackward(function));
  }
  rows.add(activationInPlace());
  rows.add(scaling());
  rows.add(droppingOut());
  rows.add(adding());
  rows.add(importing());
  checkRows(rows);
}

TEST_CASE("kernels: filters are padded with zeros on the device, and come back unchanged") {
  for (auto element: {Element::FLOAT32, Element::BFLOAT16, Element::FLOAT16}) {
    for (uint inputs: {16, 5}) {
      for (uint plane: {1, 9}) {
        Filters filters{11, inputs, plane, 16, 16};
        // Each filter stands for an image. The padding after the last filter is images of zeros.
        Tensor values = drawTensor(1, 16, {inputs, 1, plane});
        for (size_t i = filters.outputs * inputs * plane; i < values.values.size(); ++i) {
          values.values[i] = 0;
        }
        auto floats = floatsOf(values);
        for (size_t i = filters.outputs * inputs * plane; i < floats.size(); ++i) floats[i] = NAN;
        Batch expected(element, Form::PADDED, values);
        Batch batch(element, Form::PADDED, 16, {inputs, 1, plane});
        filters.paddedInputs = batch.view().width;
        runOnHost(ImportFilters{element, floats.begin(), batch.view().data, filters});
        auto read = batch.values();
        CHECK(distance(read, expected.values()) == 0);

        size_t count = size_t(filters.outputs) * inputs * plane;
        auto back = kj::heapArray<float>(count + 1);
        back[count] = 7;
        runOnHost(ExportFilters{element, batch.view().data, back.begin(), filters, 0.5});
        for (size_t i = 0; i < count; ++i) REQUIRE(back[i] == float(0.5 * read.values[i]));
        CHECK(back[count] == 7);
      }
    }
  }
}

TEST_CASE("kernels: rows of logits come back as floats") {
  for (auto form: {Form::PADDED, Form::PART}) {
    Batch batch(Element::BFLOAT16, form, drawTensor(1, 40, {10}));
    auto floats = kj::heapArray<float>(400);
    runOnHost(ExportRows{Element::BFLOAT16, batch.view(), floats.begin()});
    auto values = batch.values();
    for (uint i = 0; i < 400; ++i) REQUIRE(floats[i] == float(values.values[i]));
  }
}

// ---- how they are launched

TEST_CASE("kernels: each thread processes several values if there are more values than threads") {
  auto drawn = drawTensor(1, 120000, {5});
  for (auto form: {Form::PADDED, Form::PART}) {
    Batch x(Element::FLOAT32, form, drawn), y(Element::FLOAT32, form, 120000, {5});
    ScaleBy kernel{Element::FLOAT32, 2, x.view(), y.view(), false};
    auto grid = gridOf(kernel, 1);
    REQUIRE((form == Form::PADDED || grid.blocks * grid.threads < 5 * 120000));
    runOnHost(kernel);
    auto doubled = y.values();
    for (size_t i = 0; i < doubled.values.size(); ++i) {
      REQUIRE(doubled.values[i] == 2 * float(drawn.values[i]));
    }
  }
}

struct Choice {
  unsigned& pack;
  template <typename T, unsigned N, typename K>
  void operator()(const K&, const Grid&) const {
    pack = N;
  }
};

unsigned packOf(const Kernel& kernel) {
  unsigned pack = 0;
  choose(kernel, Choice{pack});
  return pack;
}

TEST_CASE("kernels: 16 bytes are moved at once where everything is aligned to 16 bytes") {
  for (auto element: {Element::FLOAT32, Element::BFLOAT16, Element::FLOAT16}) {
    uint all = 16 / bytesOf(element);
    Batch padded(element, Form::PADDED, 1, {5}), part(element, Form::PART, 1, {5}),
        aligned(element, Form::ALIGNED_PART, 1, {5});
    CHECK(packOf(AddUp{element, padded.view(), aligned.view(), padded.view()}) == all);
    CHECK(packOf(AddUp{element, padded.view(), part.view(), padded.view()}) == 1);
    CHECK(packOf(AddUp{element, padded.view(), padded.view(), part.view()}) == 1);
  }
}

TEST_CASE("kernels: a grid has at least one block, because an empty launch fails") {
  Batch none(Element::FLOAT32, Form::PADDED, 0, {4});
  ScaleBy kernel{Element::FLOAT32, 2, none.view(), none.view(), false};
  CHECK(gridOf(kernel, 4).blocks == 1);
  runOnHost(kernel);
  none.values();
}

}  // namespace
}  // namespace nn::cuda
