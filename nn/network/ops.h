// nn/network/ops.h: the list of all ops: what they compute, their gradients, and the shapes of
// their outputs.
#pragma once

#include <kj/array.h>
#include <kj/one-of.h>
#include <kj/string.h>

#include <cstdint>

namespace nn {

using kj::uint;

// Shape of one image's tensor; a vector is C×1×1. Batches are N×C×H×W.
struct Shape {
  uint channels;
  uint height = 1;
  uint width = 1;

  size_t size() const { return size_t(channels) * height * width; }
  bool operator==(const Shape&) const = default;
};

// `3×28×28`, for messages.
kj::String KJ_STRINGIFY(const Shape& shape);

// The batch of images: node 0 of every graph.
struct Input {};

// y[n,k,i,j] = sum_{c,u,v} x[n, c, i·stride+u-pad, j·stride+v-pad] · w[k,c,u,v] + b[k]
// Outside of the image, x is 0. Output side: floor((H + 2·pad - kernel) / stride) + 1.
// Keys: weight O×I×kernel×kernel, then bias O if `bias`.
//
// With g the gradient of y:
//   dw[k,c,u,v] = sum_{n,i,j} g[n,k,i,j] · x[n, c, i·stride+u-pad, j·stride+v-pad]
//   db[k] = sum_{n,i,j} g[n,k,i,j]
//   dx[n, c, i·stride+u-pad, j·stride+v-pad] += g[n,k,i,j] · w[k,c,u,v], for all k, i, j, u, v
struct Conv2d {
  uint filters;
  uint kernel;
  uint stride;
  uint pad;
  bool bias;
};

// y[n,k] = sum_c x[n,c] w[k,c] + b[k], x flattened as C×H×W. Keys: weight out×in, then bias if
// `bias`. dx[n,c] = sum_k g[n,k] w[k,c], dw[k,c] = sum_n g[n,k] x[n,c], db[k] = sum_n g[n,k].
struct Dense {
  uint units;
  bool bias;
};

// y[n,c,·] = gamma[c] · (x - mean[c]) / sqrt(variance[c] + epsilon) + beta[c]
//
// Training: mean and (biased) variance over all rows of the batch and all pixels; moving ←
// momentum · moving + (1 - momentum) · batch, for the variance the biased one too. Validation: the
// moving ones. Keys: gamma, beta; statistics: moving mean, moving variance.
//
// `fixedGamma` treats gamma as 1, whatever the array holds: its gradient is 0, and so are its key's
// factors of learning rate and decay.
//
// With g the gradient of y, s = 1 / sqrt(variance[c] + epsilon), h = s · (x - mean[c]) and M values
// per channel:
//   dbeta = sum g, dgamma = sum g·h, dx = gamma · s · (g - dbeta / M - h · dgamma / M).
struct BatchNorm {
  float epsilon;
  float momentum;
  bool fixedGamma;
  float movingMeanStart = 0;
  float movingVarianceStart = 1;
};

// y = f(x) element by element. dx follows from the gradient g and the output y alone, except for
// GELU:
//   RELU     max(x, 0)                dx = g where y > 0, else 0
//   TANH     tanh(x)                  dx = g · (1 - y²)
//   SIGMOID  1 / (1 + e^-x)           dx = g · y · (1 - y)
//   ELU      x where x > 0, else e^x - 1 (Clevert et al. 2016, with alpha 1)
//                                     dx = g where y > 0, else g · (y + 1)
//   GELU     x · P(x), with P the normal distribution's function (Hendrycks and Gimpel 2016)
//                                     dx = g · (P(x) + x · e^(-x²/2) / sqrt(2π))
struct Activation {
  enum Function { RELU, TANH, SIGMOID, ELU, GELU } function;
};

// y = factor · x; dx = factor · g.
struct Scale {
  float factor;
};

// Training: y = x · m / (1 - rate), dx = g · m / (1 - rate), where m is 0 with probability `rate`,
// else 1. m depends only on the number of the row, the node and the element (nn/dropout.h).
// Validation: y = x. (Srivastava et al. 2014, scaled while training.)
struct Dropout {
  double rate;  // 0 ≤ rate < 1
};

// Max or average over kernel×kernel windows. The side of the output is
//   FLOOR  floor((H + 2·pad - kernel) / stride) + 1
//   CEIL   min(H + 2·pad - kernel + stride - 1, H + 2·pad - 1) / stride + 1 in integer division, so
//          windows may hang over the edge (MXNet's "full")
// Max ignores places outside of the image. The first maximum in row order gets the gradient.
// Average always divides by kernel². A window that is entirely outside is a misfit.
struct Pool {
  // The largest side of a MAX window on a GPU, which keeps the place of a maximum in a byte.
  static constexpr uint GPU_KERNEL_MAX = 16;

  enum Function { MAX, AVERAGE } function;
  uint kernel;
  uint stride;
  uint pad;
  enum Rounding { FLOOR, CEIL } rounding;
};

// y = x₀ + x₁ + …, all of one shape.
struct Add {};

// Channels of the inputs one after another; heights and widths agree.
struct Concat {};

// loss[n] = -log softmax(x[n,·])[label[n]]. The gradient of x is softmax - onehot. Gradients are
// summed over the batch and never averaged, because the store divides. Rows with label -1 do not
// count and have no gradient. The last node of every graph.
//
// With `smoothing` s, training replaces onehot by (1 - s) · onehot + s / classes, in the loss too
// (Szegedy et al. 2016, section 7). Validation does not.
struct SoftmaxCrossEntropy {
  float smoothing = 0;  // 0 ≤ smoothing < 1
};

using Op = kj::OneOf<Input, Conv2d, Dense, BatchNorm, Activation, Scale, Dropout, Pool, Add, Concat,
    SoftmaxCrossEntropy>;

// Returns `conv2d`, `dense`, …, for messages and profiles.
kj::StringPtr nameOf(const Op& op);

// Returns why `op` cannot take these inputs, as a sentence with the shapes ("kernel 5 does not fit
// in 3×3 with pad 0"). Null if it can.
kj::Maybe<kj::String> misfit(const Op& op, kj::ArrayPtr<const Shape> inputs);

// Returns the shape of the output for these inputs. The loss has one number per image. Throws the
// sentence of misfit() if there is one.
Shape inferShape(const Op& op, kj::ArrayPtr<const Shape> inputs);

// Returns the floating-point operations of one image, forward: two per multiply-add. For ops
// without multiply-adds, an approximate number of operations.
uint64_t forwardFlops(const Op& op, kj::ArrayPtr<const Shape> inputs);

}  // namespace nn
