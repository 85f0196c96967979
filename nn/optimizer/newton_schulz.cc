#include "nn/optimizer/newton_schulz.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "configs/language/each_instruction_set.h"
#include "nn/loops/squares.h"

namespace nn {
namespace {

// The number of columns whose part of the right matrix stays in the second-level cache. A row of it
// takes 1 KiB.
constexpr size_t BLOCK = 256;

// Adds to ROWS rows of `size` sums, which are n apart. Works on four terms and two rows at once. So
// each value of the right matrix that is read is used twice, and each sum is read and written a
// quarter as often.
template <size_t ROWS>
[[gnu::always_inline]] inline void addToRows(float* __restrict__ sums, const float* left,
    const float* right, size_t k, size_t n, size_t size) {
  size_t l = 0;
  for (; l + 4 <= k; l += 4) {
    float factors[ROWS][4];
    for (size_t r = 0; r < ROWS; ++r) {
      for (size_t t = 0; t < 4; ++t) factors[r][t] = left[r * k + l + t];
    }
    const float* row = right + l * n;
    for (size_t j = 0; j < size; ++j) {
      float a = row[j], b = row[n + j], c = row[2 * n + j], d = row[3 * n + j];
      for (size_t r = 0; r < ROWS; ++r) {
        auto& f = factors[r];
        sums[r * n + j] = sums[r * n + j] + f[0] * a + f[1] * b + f[2] * c + f[3] * d;
      }
    }
  }
  for (; l < k; ++l) {
    for (size_t r = 0; r < ROWS; ++r) {
      float factor = left[r * k + l];
      for (size_t j = 0; j < size; ++j) sums[r * n + j] += factor * right[l * n + j];
    }
  }
}

// out[i,j] ← out[i,j] + sum_l left[i,l] right[l,j], l ascending; out has m × n values, left m × k.
EACH_INSTRUCTION_SET void addProduct(
    float* out, const float* left, const float* right, size_t m, size_t k, size_t n) {
  for (size_t begin = 0; begin < n; begin += BLOCK) {
    size_t size = n - begin < BLOCK ? n - begin : BLOCK;
    size_t i = 0;
    for (; i + 2 <= m; i += 2) {
      addToRows<2>(out + i * n + begin, left + i * k, right + begin, k, n, size);
    }
    if (i < m) addToRows<1>(out + i * n + begin, left + i * k, right + begin, k, n, size);
  }
}

EACH_INSTRUCTION_SET void scale(float* out, const float* from, size_t size, float by) {
  for (size_t i = 0; i < size; ++i) out[i] = by * from[i];
}

// out ← a · out + b · more
EACH_INSTRUCTION_SET void blend(
    float* __restrict__ out, const float* more, size_t size, float a, float b) {
  for (size_t i = 0; i < size; ++i) out[i] = a * out[i] + b * more[i];
}

// `from` has rows × cols values, `to` cols × rows.
void transpose(float* __restrict__ to, const float* from, size_t rows, size_t cols) {
  // A square of 16×16 has one cache line per row, in both matrices.
  for (size_t top = 0; top < rows; top += 16) {
    for (size_t left = 0; left < cols; left += 16) {
      for (size_t i = top; i < top + 16 && i < rows; ++i) {
        for (size_t j = left; j < left + 16 && j < cols; ++j) to[j * rows + i] = from[i * cols + j];
      }
    }
  }
}

}  // namespace

EACH_INSTRUCTION_SET void momentumStep(const MomentumStep& step) {
  auto [size, gradient, next, state, rescale, momentum, nesterov] = step;
  float* __restrict__ out = next;
  float* __restrict__ moving = state;
  if (nesterov) {
    for (size_t i = 0; i < size; ++i) {
      float g = rescale * gradient[i];
      moving[i] = momentum * moving[i] + g;
      out[i] = g + momentum * moving[i];
    }
  } else {
    for (size_t i = 0; i < size; ++i) {
      moving[i] = momentum * moving[i] + rescale * gradient[i];
      out[i] = moving[i];
    }
  }
}

EACH_INSTRUCTION_SET void shrinkAndStep(
    size_t size, const float* current, float* next, float shrink, float rate) {
  float* __restrict__ out = next;
  for (size_t i = 0; i < size; ++i) {
    out[i] = (current[i] - shrink * current[i]) - rate * out[i];
  }
}

void orthogonalize(const NewtonSchulz& work) {
  constexpr float A = 3.4445f, B = -4.7750f, C = 2.0315f;
  size_t size = work.rows * work.cols;
  bool tall = work.rows > work.cols;
  size_t rows = tall ? work.cols : work.rows, cols = tall ? work.rows : work.cols;

  float *x = work.matrix, *y = work.scratch[0], *gram = work.scratch[1], *factor = work.scratch[2];
  if (tall) {
    transpose(y, work.matrix, work.rows, work.cols);
    std::swap(x, y);
  }
  scale(x, x, size, float(1 / (std::sqrt(sumOfSquares(x, size)) + 1e-7)));
  for (unsigned s = 0; s < work.steps; ++s) {
    transpose(y, x, rows, cols);
    memset(gram, 0, rows * rows * sizeof(float));
    addProduct(gram, x, y, rows, cols, rows);
    memset(factor, 0, rows * rows * sizeof(float));
    addProduct(factor, gram, gram, rows, rows, rows);
    blend(factor, gram, rows * rows, C, B);
    scale(y, x, size, A);
    addProduct(y, factor, x, rows, rows, cols);
    std::swap(x, y);
  }
  if (tall) {
    transpose(y, x, rows, cols);
    std::swap(x, y);
  }
  if (x != work.matrix) memcpy(work.matrix, x, size * sizeof(float));
}

}  // namespace nn
