#include "nn/network/ops.h"

#include <doctest/doctest.h>
#include <kj/exception.h>

namespace nn {
namespace {

Shape shapeOf(Op op, Shape x) {
  return inferShape(op, kj::arrayPtr(&x, 1));
}

kj::String misfitOf(Op op, kj::ArrayPtr<const Shape> inputs) {
  KJ_IF_MAYBE(sentence, misfit(op, inputs)) return kj::mv(*sentence);
  return kj::str("fits");
}
kj::String misfitOf(Op op, Shape x) {
  return misfitOf(op, kj::arrayPtr(&x, 1));
}

Pool pool(uint kernel, uint stride, uint pad, Pool::Rounding rounding) {
  return {Pool::MAX, kernel, stride, pad, rounding};
}

TEST_CASE("Ops: a convolution rounds its output side down") {
  CHECK(shapeOf(Conv2d{20, 5, 1, 0, true}, {1, 28, 28}) == Shape{20, 24, 24});
  CHECK(shapeOf(Conv2d{7, 3, 2, 1, true}, {3, 28, 27}) == Shape{7, 14, 14});
  CHECK(shapeOf(Conv2d{32, 3, 2, 0, true}, {1, 28, 28}) == Shape{32, 13, 13});
}

TEST_CASE("Ops: windows of a pool reach over the edge if rounded up, and never if rounded down") {
  CHECK(shapeOf(pool(3, 2, 0, Pool::CEIL), {80, 28, 28}) == Shape{80, 14, 14});
  CHECK(shapeOf(pool(3, 2, 0, Pool::FLOOR), {80, 28, 28}) == Shape{80, 13, 13});
  CHECK(shapeOf(pool(2, 2, 0, Pool::CEIL), {32, 13, 3}) == Shape{32, 7, 2});
  CHECK(shapeOf(pool(3, 1, 1, Pool::CEIL), {5, 28, 28}) == Shape{5, 28, 28});
}

TEST_CASE(
    "Ops: concat adds up channels, add keeps the shape, dense flattens, the loss is one number") {
  Shape inputs[] = {{3, 4, 5}, {10, 4, 5}, {17, 4, 5}};
  CHECK(inferShape(Concat(), inputs) == Shape{30, 4, 5});
  Shape same[] = {{3, 4, 5}, {3, 4, 5}};
  CHECK(inferShape(Add(), same) == Shape{3, 4, 5});
  CHECK(shapeOf(Dense{7, true}, {3, 4, 5}) == Shape{7});
  CHECK(shapeOf(SoftmaxCrossEntropy(), {10}) == Shape{1});
}

TEST_CASE("Ops: misfit() returns a sentence with the shapes") {
  CHECK(misfitOf(Conv2d{1, 5, 1, 0, true}, {1, 3, 3}) == "kernel 5 does not fit in 3×3 with pad 0");
  CHECK(misfitOf(Conv2d{1, 5, 1, 1, true}, {1, 3, 3}) == "fits");
  CHECK(
      misfitOf(pool(4, 1, 0, Pool::CEIL), {1, 8, 3}) == "kernel 4 does not fit in 8×3 with pad 0");
  CHECK(misfitOf(pool(2, 5, 1, Pool::CEIL), {1, 4, 4}) ==
        "with kernel 2, stride 5 and pad 1 a window lies outside of the 4×4 input");
  CHECK(misfitOf(pool(2, 2, 2, Pool::FLOOR), {1, 4, 4}) ==
        "with kernel 2, stride 2 and pad 2 a window lies outside of the 4×4 input");
  Shape sides[] = {{3, 4, 5}, {3, 4, 6}};
  CHECK(misfitOf(Concat(), sides) ==
        "branches of 3×4×5 and 3×4×6 cannot be concatenated: their heights and widths must be "
        "equal");
  CHECK(misfitOf(Add(), sides) ==
        "branches of 3×4×5 and 3×4×6 cannot be added: their shapes must be equal");
  CHECK(misfitOf(SoftmaxCrossEntropy(), {10, 2, 2}) ==
        "the loss needs one number per class, but the last layer gives 10×2×2");
}

TEST_CASE("Ops: a weight or an output of more than 2^31 - 1 values is a misfit") {
  CHECK(misfitOf(Dense{1 << 24, true}, {1 << 24, 1, 1}) ==
        "a weight of 16777216×16777216×1 is too large: at most 2147483647 values");
  CHECK(misfitOf(Pool{Pool::AVERAGE, 4096, 1, 4095, Pool::FLOOR}, {128, 28, 28}) ==
        "an output of 128×4123×4123 is too large: at most 2147483647 values");
  CHECK(misfitOf(Conv2d{1 << 24, 4096, 1, 4096, true}, {1 << 24, 1, 1}) != "fits");
  CHECK(misfitOf(Conv2d{1 << 24, 1, 1, 0, true}, {1, 64, 64}) != "fits");
}

TEST_CASE("Ops: the work of a convolution is two operations per tap") {
  Shape x{96, 28, 28};
  CHECK(
      forwardFlops(Conv2d{32, 3, 1, 1, true}, kj::arrayPtr(&x, 1)) == 2ull * 28 * 28 * 32 * 96 * 9);
  CHECK(forwardFlops(Dense{10, true}, kj::arrayPtr(&x, 1)) == 2ull * 10 * 96 * 28 * 28);
}

}  // namespace
}  // namespace nn
