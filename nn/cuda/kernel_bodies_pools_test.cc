#include <doctest/doctest.h>
#include <kj/debug.h>
#include <math.h>
#include <string.h>

#include "nn/cuda/testing/host_kernels.h"
#include "nn/cuda/testing/test_rows.h"

namespace nn::cuda {
namespace {

Windows windowsOf(const Pool& pool, Shape in) {
  Shape out = inferShape(pool, kj::arrayPtr(&in, 1));
  return {{in.height, in.width}, {out.height, out.width}, pool.kernel, pool.stride, pool.pad};
}

kj::String nameOf(const Pool& pool) {
  return kj::str(pool.function == Pool::MAX ? "max" : "average", " kernel ", pool.kernel,
      " stride ", pool.stride, " pad ", pool.pad);
}

Row pooling(Pool pool) {
  auto run = [=](const Trial& t) {
    auto windows = windowsOf(pool, t.shape);
    if (pool.function == Pool::MAX) {
      t.run(PoolMax{t.element, windows, t.inputs[0].view(), t.output.view(), nullptr});
    } else {
      t.run(PoolAverage{t.element, windows, t.inputs[0].view(), t.output.view()});
    }
  };
  auto expect = [=](const Trial& t, Tensor& y) { reference::forward(pool, t.values[0], y); };
  return {nameOf(pool), 1, false, kj::mv(run), kj::mv(expect), pool};
}

Row poolingBackward(Pool pool) {
  auto run = [=](const Trial& t) {
    auto windows = windowsOf(pool, t.shape);
    auto dy = t.inputs[1].view(), dx = t.output.view();
    if (pool.function == Pool::AVERAGE) {
      t.run(PoolAverageBackward{t.element, windows, dy, dx, t.adds});
      return;
    }
    Batch y(t.element, Form::PART, t.images, t.values[1].shape);
    size_t size = size_t(dy.pixels) * dy.channels;
    auto places = kj::heapArray<uint8_t>(size + 1);
    memset(places.begin(), 0xff, places.size());
    t.run(PoolMax{t.element, windows, t.inputs[0].view(), y.view(), places.begin()});
    KJ_REQUIRE(places[size] == 0xff);
    t.run(PoolMaxBackward{t.element, windows, dy, places.begin(), dx, t.adds});
  };
  auto expect = [=](const Trial& t, Tensor& dx) {
    reference::backward(pool, t.values[0], t.values[1], dx);
  };
  return {kj::str(nameOf(pool), " backward"), 2, true, kj::mv(run), kj::mv(expect), pool};
}

TEST_CASE("pools: values and gradients agree with plain loops, also where windows cross the edge") {
  struct {
    uint kernel, stride, pad;
    Pool::Rounding rounding;
  } shapes[] = {{2, 2, 0, Pool::FLOOR}, {3, 2, 1, Pool::FLOOR}, {3, 2, 0, Pool::CEIL},
      {3, 1, 1, Pool::FLOOR}, {5, 3, 2, Pool::CEIL}, {2, 3, 0, Pool::FLOOR}};
  kj::Vector<Row> rows;
  for (auto& shape: shapes) {
    for (auto function: {Pool::MAX, Pool::AVERAGE}) {
      Pool pool{function, shape.kernel, shape.stride, shape.pad, shape.rounding};
      rows.add(pooling(pool));
      rows.add(poolingBackward(pool));
    }
  }
  checkRows(rows);
}

TEST_CASE("pools: in a window of only -inf, the first place inside the image is the maximum") {
  Tensor values(1, {1, 2, 2});
  for (double& value: values.values) value = -INFINITY;
  Batch x(Element::FLOAT32, Form::PADDED, values), y(Element::FLOAT32, Form::PADDED, 1, {1});
  uint8_t place = 7;
  runOnHost(PoolMax{Element::FLOAT32, {{2, 2}, {1, 1}, 3, 1, 1}, x.view(), y.view(), &place});
  CHECK(y.values().values[0] == -INFINITY);
  CHECK(place == 4);
}

}  // namespace
}  // namespace nn::cuda
