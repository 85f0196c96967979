#include <kj/debug.h>

#include "nn/cuda/lt_product.h"

namespace nn::cuda {

namespace {

// The matrices of a convolution, stored row by row: x is rows×c, y is rows×k, the filters are k×c.
// The rows of x are `xRow` values apart, those of y `yRow` values.
struct Matrices {
  uint64_t rows, c, k;
  int64_t xRow, yRow;
};

kj::Maybe<Matrices> matricesOf(const ConvolutionProblem& shape) {
  auto &x = shape.x, &y = shape.y;
  if (shape.pad != 0) return nullptr;
  if (shape.kernelHeight == 1 && shape.kernelWidth == 1 && shape.stride == 1) {
    uint64_t pixels = uint64_t(shape.images) * x.height * x.width;
    return Matrices{pixels, x.channels, y.channels, x.stride, y.stride};
  }
  bool isDense = shape.kernelHeight == x.height && shape.kernelWidth == x.width && y.height == 1 &&
                 y.width == 1 && x.stride == x.channels;
  if (!isDense) return nullptr;
  uint64_t values = uint64_t(x.height) * x.width * x.channels;
  return Matrices{shape.images, values, y.channels, int64_t(values), y.stride};
}

}  // namespace

kj::Maybe<Product> productOf(const ConvolutionProblem& shape, Direction direction) {
  KJ_IF_MAYBE(found, matricesOf(shape)) {
    auto& o = *found;
    switch (direction) {
      case Direction::FORWARD:  // (a = x, b = w): yᵀ = w·xᵀ
        return Product{.swaps = true,
            .transposesA = true,
            .transposesB = false,
            .m = o.k,
            .n = o.rows,
            .k = o.c,
            .lda = int64_t(o.c),
            .ldb = o.xRow,
            .ldc = o.yRow};
      case Direction::BACKWARD_DATA:  // (a = dy, b = w): dxᵀ = wᵀ·dyᵀ
        return Product{.swaps = true,
            .transposesA = false,
            .transposesB = false,
            .m = o.c,
            .n = o.rows,
            .k = o.k,
            .lda = int64_t(o.c),
            .ldb = o.yRow,
            .ldc = o.xRow};
      case Direction::BACKWARD_FILTERS:  // (a = x, b = dy): dwᵀ = xᵀ·dy
        return Product{.swaps = false,
            .transposesA = false,
            .transposesB = true,
            .m = o.c,
            .n = o.k,
            .k = o.rows,
            .lda = o.xRow,
            .ldb = o.yRow,
            .ldc = int64_t(o.c)};
    }
    KJ_UNREACHABLE;
  }
  return nullptr;
}

}  // namespace nn::cuda
