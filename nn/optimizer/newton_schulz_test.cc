#include "nn/optimizer/newton_schulz.h"

#include <doctest/doctest.h>
#include <kj/array.h>

#include <cmath>
#include <cstring>

#include "configs/language/random.h"
#include "nn/loops/squares.h"

namespace nn {
namespace {

kj::Array<float> drawn(size_t size, uint64_t seed) {
  configs::Random random(seed, configs::Purpose::INITIAL_VALUES);
  auto result = kj::heapArray<float>(size);
  for (float& value: result) value = float(random.normal());
  return result;
}

// Orthogonalizes a copy of `matrix` with the code under test.
kj::Array<float> orthogonal(
    kj::ArrayPtr<const float> matrix, size_t rows, size_t cols, uint steps) {
  auto result = kj::heapArray<float>(matrix);
  auto scratch = kj::heapArray<float>(3 * rows * cols);
  orthogonalize({.rows = rows,
      .cols = cols,
      .steps = steps,
      .matrix = result.begin(),
      .scratch = {
          scratch.begin(), scratch.begin() + rows * cols, scratch.begin() + 2 * rows * cols}});
  return result;
}

// Plain loops in T, each sum in ascending order. Volatile keeps the compiler from vectorising.
template <typename T>
kj::Array<T> product(const kj::Array<T>& left, const kj::Array<T>& right, size_t m, size_t k,
    size_t n, const kj::Array<T>& begin) {
  auto result = kj::heapArray<T>(m * n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      volatile T sum = begin.size() == 0 ? T(0) : begin[i * n + j];
      for (size_t l = 0; l < k; ++l) {
        volatile T term = left[i * k + l] * right[l * n + j];
        sum = sum + term;
      }
      result[i * n + j] = sum;
    }
  }
  return result;
}

template <typename T>
kj::Array<T> transposed(const kj::Array<T>& from, size_t rows, size_t cols) {
  auto result = kj::heapArray<T>(from.size());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < cols; ++j) result[j * rows + i] = from[i * cols + j];
  }
  return result;
}

// The formula of newton_schulz.h in T.
template <typename T>
kj::Array<T> byFormula(kj::ArrayPtr<const float> matrix, size_t rows, size_t cols, uint steps) {
  auto x = kj::heapArray<T>(matrix.size());
  for (size_t i: kj::indices(matrix)) x[i] = matrix[i];
  if (rows > cols) {
    auto turned =
        byFormula<T>(transposed(kj::heapArray<float>(matrix), rows, cols), cols, rows, steps);
    return transposed(turned, cols, rows);
  }
  double length = std::sqrt(sumOfSquares(matrix.begin(), matrix.size()));
  for (T& value: x) value = T(1 / (length + 1e-7)) * value;
  for (uint s = 0; s < steps; ++s) {
    auto gram = product(x, transposed(x, rows, cols), rows, cols, rows, {});
    auto factor = product(gram, gram, rows, rows, rows, {});
    for (size_t i: kj::indices(factor)) {
      volatile T square = T(2.0315f) * factor[i], linear = T(-4.7750f) * gram[i];
      factor[i] = square + linear;
    }
    auto begin = kj::heapArray<T>(x.size());
    for (size_t i: kj::indices(x)) begin[i] = T(3.4445f) * x[i];
    x = product(factor, x, rows, rows, cols, begin);
  }
  return x;
}

// Not multiples of a block or a vector, wide, tall, a row, a column.
constexpr struct {
  size_t rows, cols;
} SHAPES[] = {{24, 216}, {7, 7}, {10, 3}, {5, 1031}, {530, 6}, {1, 9}, {9, 1}};

TEST_CASE("newton_schulz: computes the bits of plain loops on every instruction set") {
  for (auto& shape: SHAPES) {
    CAPTURE(shape.rows);
    CAPTURE(shape.cols);
    auto matrix = drawn(shape.rows * shape.cols, 1);
    auto got = orthogonal(matrix, shape.rows, shape.cols, 3);
    auto expected = byFormula<float>(matrix, shape.rows, shape.cols, 3);
    CHECK(memcmp(got.begin(), expected.begin(), got.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("newton_schulz: agrees with the formula in double") {
  for (auto& shape: SHAPES) {
    auto matrix = drawn(shape.rows * shape.cols, 2);
    auto got = orthogonal(matrix, shape.rows, shape.cols, 5);
    auto expected = byFormula<double>(matrix, shape.rows, shape.cols, 5);
    for (size_t i: kj::indices(got)) {
      CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-4));
    }
  }
}

TEST_CASE("newton_schulz: five steps bring all singular values to 0.6 ... 1.3") {
  size_t rows = 16, cols = 100;
  auto x = orthogonal(drawn(rows * cols, 3), rows, cols, 5);
  // Bounds of the eigenvalues of X Xᵀ from its trace, and from the largest by the power method.
  auto gram = product(x, transposed(x, rows, cols), rows, cols, rows, {});
  double trace = 0;
  for (size_t i = 0; i < rows; ++i) trace += gram[i * rows + i];
  CHECK(std::sqrt(trace / double(rows)) > 0.6);
  auto vector = drawn(rows, 4);
  double largest = 0;
  for (uint turn = 0; turn < 200; ++turn) {
    vector = product(gram, vector, rows, rows, 1, {});
    double length = std::sqrt(sumOfSquares(vector.begin(), rows));
    for (float& value: vector) value = float(value / length);
    largest = length;
  }
  CHECK(std::sqrt(largest) < 1.3);
  // The smallest eigenvalue, from the largest one of 2 - X Xᵀ.
  for (size_t i: kj::indices(gram)) gram[i] = (i % (rows + 1) == 0 ? 2.0f : 0.0f) - gram[i];
  double rest = 0;
  for (uint turn = 0; turn < 200; ++turn) {
    vector = product(gram, vector, rows, rows, 1, {});
    rest = std::sqrt(sumOfSquares(vector.begin(), rows));
    for (float& value: vector) value = float(value / rest);
  }
  CHECK(std::sqrt(2 - rest) > 0.6);
}

TEST_CASE("newton_schulz: a matrix of zeros stays zero") {
  auto zeros = kj::heapArray<float>(12);
  for (float& value: zeros) value = 0;
  for (float value: orthogonal(zeros, 3, 4, 5)) CHECK(value == 0);
}

TEST_CASE("squares: the sum is that of 16 partial sums in double") {
  for (size_t size: {0, 1, 15, 16, 17, 1003}) {
    auto values = drawn(size, 5);
    double sums[16] = {};
    for (size_t i = 0; i < size; ++i) {
      volatile double square = double(values[i]) * values[i];
      sums[i % 16] += square;
    }
    double total = 0;
    for (double sum: sums) total += sum;
    CHECK(sumOfSquares(values.begin(), size) == total);
  }
}

}  // namespace
}  // namespace nn
