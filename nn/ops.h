// nn/ops.h: the closed list of ops: what they compute, their gradients, and the shapes they give.
#pragma once

#include <kj/array.h>
#include <kj/one-of.h>
#include <kj/string.h>

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

// The batch of images: node 0 of every graph.
struct Input {};

// y[n,k,i,j] = sum_{c,u,v} x[n, c, i·stride+u-pad, j·stride+v-pad] · w[k,c,u,v] + b[k]
// Outside of x reads 0. Output side: floor((H + 2·pad - kernel) / stride) + 1.
// Keys: weight O×I×kernel×kernel, then bias O if `bias`.
struct Conv2d {
  uint filters;
  uint kernel;
  uint stride;
  uint pad;
  bool bias;
};

// y[n,k] = sum_c x[n,c] w[k,c] + b[k], x flattened as C×H×W. Keys: weight out×in, then bias if `bias`.
struct Dense {
  uint units;
  bool bias;
};

// y[n,c,·] = gamma[c] · (x - mean[c]) / sqrt(variance[c] + epsilon) + beta[c]
// Training: mean and (biased) variance over batch and pixels; moving ← momentum · moving + (1 - momentum) · batch,
// for the variance the biased one too. Validation: the moving ones. Keys: gamma, beta; statistics: moving mean,
// moving variance. `fixedGamma` holds gamma at 1: its gradient is 0.
struct BatchNorm {
  float epsilon;
  float momentum;
  bool fixedGamma;
};

// y = f(x) element by element.
struct Activation {
  enum Function { RELU, TANH } function;
};

// Max or average over kernel×kernel windows. Output side, FLOOR: floor((H + 2·pad - kernel) / stride) + 1; CEIL:
// min(H + 2·pad - kernel + stride - 1, H + 2·pad - 1) / stride + 1 in integer division, so that windows may hang over
// the edge (MXNet's "full"). Max ignores what is outside, the first maximum in row order gets the gradient;
// average divides by kernel² always.
struct Pool {
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

// loss[n] = -log softmax(x[n,·])[label[n]]. The gradient to x is softmax - onehot, summed over the batch, never
// averaged: the store divides. Rows with label -1 count nothing and give no gradient. The last node of every graph.
struct SoftmaxCrossEntropy {};

using Op = kj::OneOf<Input, Conv2d, Dense, BatchNorm, Activation, Pool, Add, Concat,
    SoftmaxCrossEntropy>;

// `conv2d`, `dense`, …: for messages and profiles.
kj::StringPtr nameOf(const Op& op);

// The shape that `op` gives for these inputs. Throws a KJ exception whose description is one sentence with both
// shapes if they do not fit ("kernel 5 does not fit in 3×3 with pad 0").
Shape inferShape(const Op& op, kj::ArrayPtr<const Shape> inputs);

// Multiply-adds times two of one image, forward.
uint64_t forwardFlops(const Op& op, kj::ArrayPtr<const Shape> inputs);

}  // namespace nn
