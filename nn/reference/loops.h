// nn/reference/loops.h: the formulas of nn/network/ops.h as plain loops in double, forward and
// backward.
#pragma once

#include <kj/array.h>

#include "nn/network/ops.h"

namespace nn {
namespace reference {

// A batch N×C×H×W in plain order.
struct Tensor {
  uint images = 0;
  Shape shape = {0};
  kj::Array<double> values;

  Tensor() = default;
  Tensor(uint images, Shape shape)
      : images(images), shape(shape), values(kj::heapArray<double>(images * shape.size())) {}

  size_t index(uint n, uint c, uint h, uint w) const {
    return ((size_t(n) * shape.channels + c) * shape.height + h) * shape.width + w;
  }
  double at(uint n, uint c, uint h, uint w) const { return values[index(n, c, h, w)]; }
  double& at(uint n, uint c, uint h, uint w) { return values[index(n, c, h, w)]; }
};

using Parameters = kj::ArrayPtr<const float>;  // of one node: its keys one after another
using Gradients = kj::ArrayPtr<double>;        // likewise

// forward() overwrites y. backward() reads dy, and adds to dx and to the gradients of the
// parameters.

void forward(const Conv2d& op, const Tensor& x, Parameters parameters, Tensor& y);
void backward(const Conv2d& op, const Tensor& x, Parameters parameters, const Tensor& dy,
    Tensor& dx, Gradients gradients);

void forward(const Dense& op, const Tensor& x, Parameters parameters, Tensor& y);
void backward(const Dense& op, const Tensor& x, Parameters parameters, const Tensor& dy, Tensor& dx,
    Gradients gradients);

// Returns mean and biased variance of each channel of x: C means, then C variances.
kj::Array<double> momentsOf(const Tensor& x);

// `moments` are the statistics to normalise with: C means, then C variances. In training, those of
// x.
void forward(const BatchNorm& op, const Tensor& x, kj::ArrayPtr<const double> moments,
    Parameters parameters, Tensor& y);
// For training: the gradient also goes through the statistics.
void backward(const BatchNorm& op, const Tensor& x, Parameters parameters, const Tensor& dy,
    Tensor& dx, Gradients gradients);

void forward(const Activation& op, const Tensor& x, Tensor& y);
void backward(const Activation& op, const Tensor& x, const Tensor& dy, Tensor& dx);

void forward(const Scale& op, const Tensor& x, Tensor& y);
void backward(const Scale& op, const Tensor& dy, Tensor& dx);

// For training. `draws` has a number for each row.
void forward(
    const Dropout& op, const Tensor& x, kj::ArrayPtr<const uint64_t> draws, uint node, Tensor& y);
void backward(
    const Dropout& op, kj::ArrayPtr<const uint64_t> draws, uint node, const Tensor& dy, Tensor& dx);

void forward(const Pool& op, const Tensor& x, Tensor& y);
void backward(const Pool& op, const Tensor& x, const Tensor& dy, Tensor& dx);

// Ops with several inputs. The same input may occur twice.
void forward(const Add& op, kj::ArrayPtr<const Tensor* const> xs, Tensor& y);
void backward(const Add& op, const Tensor& dy, kj::ArrayPtr<Tensor* const> dxs);

void forward(const Concat& op, kj::ArrayPtr<const Tensor* const> xs, Tensor& y);
void backward(const Concat& op, const Tensor& dy, kj::ArrayPtr<Tensor* const> dxs);

// Computes the loss of each row, N×1, with the op's smoothing. It is 0 where the label is -1.
void forward(
    const SoftmaxCrossEntropy& op, const Tensor& x, kj::ArrayPtr<const int32_t> labels, Tensor& y);
// Computes the gradient of the sum of all rows' losses.
void backward(
    const SoftmaxCrossEntropy& op, const Tensor& x, kj::ArrayPtr<const int32_t> labels, Tensor& dx);

}  // namespace reference
}  // namespace nn
