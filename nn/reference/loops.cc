#include "nn/reference/loops.h"

#include <kj/debug.h>

#include <cmath>

#include "nn/dropout.h"

namespace nn {
namespace reference {
namespace {

// Calls body(c, h, w, weight index) for each x that output pixel (i, j) of filter k reads.
template <typename Body>
void eachTap(const Conv2d& op, Shape x, uint k, uint i, uint j, Body&& body) {
  size_t weight = size_t(k) * x.channels * op.kernel * op.kernel;
  for (uint c = 0; c < x.channels; ++c) {
    for (uint u = 0; u < op.kernel; ++u) {
      for (uint v = 0; v < op.kernel; ++v, ++weight) {
        // Above or left of x the subtraction wraps to a huge number: outside too.
        uint h = i * op.stride + u - op.pad, w = j * op.stride + v - op.pad;
        if (h < x.height && w < x.width) body(c, h, w, weight);
      }
    }
  }
}

// Calls body(n, c, h, w) for every element.
template <typename Body>
void eachElement(const Tensor& tensor, Body&& body) {
  for (uint n = 0; n < tensor.images; ++n) {
    for (uint c = 0; c < tensor.shape.channels; ++c) {
      for (uint h = 0; h < tensor.shape.height; ++h) {
        for (uint w = 0; w < tensor.shape.width; ++w) body(n, c, h, w);
      }
    }
  }
}

// Calls body(h, w) for each x in the window of output pixel (i, j).
template <typename Body>
void eachOfWindow(const Pool& op, Shape x, uint i, uint j, Body&& body) {
  for (uint u = 0; u < op.kernel; ++u) {
    for (uint v = 0; v < op.kernel; ++v) {
      uint h = i * op.stride + u - op.pad, w = j * op.stride + v - op.pad;
      if (h < x.height && w < x.width) body(h, w);
    }
  }
}

// The index in x of the first maximum of a window.
size_t maximumOf(const Pool& op, const Tensor& x, uint n, uint c, uint i, uint j) {
  bool isFirst = true;
  size_t best = 0;
  eachOfWindow(op, x.shape, i, j, [&](uint h, uint w) {
    size_t here = x.index(n, c, h, w);
    if (isFirst || x.values[here] > x.values[best]) best = here;
    isFirst = false;
  });
  return best;
}

// The probability that a normal number is below `x`.
double normalBelow(double x) {
  return std::erfc(-x / std::sqrt(2.0)) / 2;
}

double activated(Activation::Function function, double x) {
  switch (function) {
    case Activation::RELU:
      return x < 0 ? 0 : x;
    case Activation::TANH:
      return std::tanh(x);
    case Activation::SIGMOID:
      return 1 / (1 + std::exp(-x));
    case Activation::ELU:
      return x > 0 ? x : std::expm1(x);
    case Activation::GELU:
      return x * normalBelow(x);
  }
  KJ_UNREACHABLE;
}

double slopeAt(Activation::Function function, double x) {
  double y = activated(function, x);
  switch (function) {
    case Activation::RELU:
      return x > 0;
    case Activation::TANH:
      return 1 - y * y;
    case Activation::SIGMOID:
      return y * (1 - y);
    case Activation::ELU:
      return x > 0 ? 1 : y + 1;
    case Activation::GELU:
      return normalBelow(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
  }
  KJ_UNREACHABLE;
}

// Calls body(index in `tensor`, whether it is kept) for every value.
template <typename Body>
void eachDrawn(const Dropout& op, const Tensor& tensor, kj::ArrayPtr<const uint64_t> draws,
    uint node, Body&& body) {
  size_t size = tensor.shape.size();
  for (size_t n = 0; n < tensor.images; ++n) {
    auto mask = dropoutMask(op.rate, draws[n], node);
    for (size_t e = 0; e < size; ++e) body(n * size + e, !isDropped(mask, e));
  }
}

double gammaOf(const BatchNorm& op, Parameters parameters, uint c) {
  return op.fixedGamma ? 1 : parameters[c];
}

}  // namespace

void forward(const Conv2d& op, const Tensor& x, Parameters parameters, Tensor& y) {
  size_t bias = size_t(op.filters) * x.shape.channels * op.kernel * op.kernel;
  eachElement(y, [&](uint n, uint k, uint i, uint j) {
    double sum = op.bias ? parameters[bias + k] : 0;
    eachTap(op, x.shape, k, i, j, [&](uint c, uint h, uint w, size_t weight) {
      sum += x.at(n, c, h, w) * parameters[weight];
    });
    y.at(n, k, i, j) = sum;
  });
}

void backward(const Conv2d& op, const Tensor& x, Parameters parameters, const Tensor& dy,
    Tensor& dx, Gradients gradients) {
  size_t bias = size_t(op.filters) * x.shape.channels * op.kernel * op.kernel;
  eachElement(dy, [&](uint n, uint k, uint i, uint j) {
    double g = dy.at(n, k, i, j);
    if (op.bias) gradients[bias + k] += g;
    eachTap(op, x.shape, k, i, j, [&](uint c, uint h, uint w, size_t weight) {
      gradients[weight] += g * x.at(n, c, h, w);
      dx.at(n, c, h, w) += g * parameters[weight];
    });
  });
}

void forward(const Dense& op, const Tensor& x, Parameters parameters, Tensor& y) {
  size_t inputs = x.shape.size();
  for (size_t n = 0; n < x.images; ++n) {
    for (size_t k = 0; k < op.units; ++k) {
      double sum = op.bias ? parameters[op.units * inputs + k] : 0;
      for (size_t c = 0; c < inputs; ++c) {
        sum += x.values[n * inputs + c] * parameters[k * inputs + c];
      }
      y.values[n * op.units + k] = sum;
    }
  }
}

void backward(const Dense& op, const Tensor& x, Parameters parameters, const Tensor& dy, Tensor& dx,
    Gradients gradients) {
  size_t inputs = x.shape.size();
  for (size_t n = 0; n < x.images; ++n) {
    for (size_t k = 0; k < op.units; ++k) {
      double g = dy.values[n * op.units + k];
      if (op.bias) gradients[op.units * inputs + k] += g;
      for (size_t c = 0; c < inputs; ++c) {
        gradients[k * inputs + c] += g * x.values[n * inputs + c];
        dx.values[n * inputs + c] += g * parameters[k * inputs + c];
      }
    }
  }
}

kj::Array<double> momentsOf(const Tensor& x) {
  uint C = x.shape.channels;
  double count = double(x.images) * x.shape.height * x.shape.width;
  auto moments = kj::heapArray<double>(2 * C);
  for (double& value: moments) value = 0;
  eachElement(x, [&](uint n, uint c, uint h, uint w) { moments[c] += x.at(n, c, h, w) / count; });
  eachElement(x, [&](uint n, uint c, uint h, uint w) {
    double d = x.at(n, c, h, w) - moments[c];
    moments[C + c] += d * d / count;
  });
  return moments;
}

void forward(const BatchNorm& op, const Tensor& x, kj::ArrayPtr<const double> moments,
    Parameters parameters, Tensor& y) {
  uint C = x.shape.channels;
  eachElement(x, [&](uint n, uint c, uint h, uint w) {
    double normal = (x.at(n, c, h, w) - moments[c]) / std::sqrt(moments[C + c] + op.epsilon);
    y.at(n, c, h, w) = gammaOf(op, parameters, c) * normal + parameters[C + c];
  });
}

void backward(const BatchNorm& op, const Tensor& x, Parameters parameters, const Tensor& dy,
    Tensor& dx, Gradients gradients) {
  uint C = x.shape.channels;
  double count = double(x.images) * x.shape.height * x.shape.width;
  auto moments = momentsOf(x);
  auto normal = [&](uint n, uint c, uint h, uint w) {
    return (x.at(n, c, h, w) - moments[c]) / std::sqrt(moments[C + c] + op.epsilon);
  };
  auto sums = kj::heapArray<double>(2 * C);  // of dy · normal, then of dy
  for (double& value: sums) value = 0;
  eachElement(x, [&](uint n, uint c, uint h, uint w) {
    sums[c] += dy.at(n, c, h, w) * normal(n, c, h, w);
    sums[C + c] += dy.at(n, c, h, w);
  });
  for (uint c = 0; c < C; ++c) {
    if (!op.fixedGamma) gradients[c] += sums[c];
    gradients[C + c] += sums[C + c];
  }
  eachElement(x, [&](uint n, uint c, uint h, uint w) {
    double g = dy.at(n, c, h, w) - sums[C + c] / count - normal(n, c, h, w) * sums[c] / count;
    dx.at(n, c, h, w) += gammaOf(op, parameters, c) / std::sqrt(moments[C + c] + op.epsilon) * g;
  });
}

void forward(const Activation& op, const Tensor& x, Tensor& y) {
  for (size_t i = 0; i < x.values.size(); ++i) {
    y.values[i] = activated(op.function, x.values[i]);
  }
}

void backward(const Activation& op, const Tensor& x, const Tensor& dy, Tensor& dx) {
  for (size_t i = 0; i < x.values.size(); ++i) {
    dx.values[i] += dy.values[i] * slopeAt(op.function, x.values[i]);
  }
}

void forward(const Scale& op, const Tensor& x, Tensor& y) {
  for (size_t i = 0; i < x.values.size(); ++i) y.values[i] = double(op.factor) * x.values[i];
}

void backward(const Scale& op, const Tensor& dy, Tensor& dx) {
  for (size_t i = 0; i < dy.values.size(); ++i) dx.values[i] += double(op.factor) * dy.values[i];
}

void forward(
    const Dropout& op, const Tensor& x, kj::ArrayPtr<const uint64_t> draws, uint node, Tensor& y) {
  eachDrawn(op, x, draws, node,
      [&](size_t i, bool isKept) { y.values[i] = isKept ? x.values[i] / (1 - op.rate) : 0; });
}

void backward(const Dropout& op, kj::ArrayPtr<const uint64_t> draws, uint node, const Tensor& dy,
    Tensor& dx) {
  eachDrawn(op, dy, draws, node, [&](size_t i, bool isKept) {
    if (isKept) dx.values[i] += dy.values[i] / (1 - op.rate);
  });
}

void forward(const Pool& op, const Tensor& x, Tensor& y) {
  eachElement(y, [&](uint n, uint c, uint i, uint j) {
    if (op.function == Pool::MAX) {
      y.at(n, c, i, j) = x.values[maximumOf(op, x, n, c, i, j)];
      return;
    }
    double sum = 0;
    eachOfWindow(op, x.shape, i, j, [&](uint h, uint w) { sum += x.at(n, c, h, w); });
    y.at(n, c, i, j) = sum / (double(op.kernel) * op.kernel);
  });
}

void backward(const Pool& op, const Tensor& x, const Tensor& dy, Tensor& dx) {
  eachElement(dy, [&](uint n, uint c, uint i, uint j) {
    double g = dy.at(n, c, i, j);
    if (op.function == Pool::MAX) {
      dx.values[maximumOf(op, x, n, c, i, j)] += g;
      return;
    }
    eachOfWindow(op, x.shape, i, j,
        [&](uint h, uint w) { dx.at(n, c, h, w) += g / (double(op.kernel) * op.kernel); });
  });
}

void forward(const Add&, kj::ArrayPtr<const Tensor* const> xs, Tensor& y) {
  for (size_t i = 0; i < y.values.size(); ++i) {
    double sum = 0;
    for (const Tensor* x: xs) sum += x->values[i];
    y.values[i] = sum;
  }
}

void backward(const Add&, const Tensor& dy, kj::ArrayPtr<Tensor* const> dxs) {
  for (Tensor* dx: dxs) {
    for (size_t i = 0; i < dy.values.size(); ++i) dx->values[i] += dy.values[i];
  }
}

void forward(const Concat&, kj::ArrayPtr<const Tensor* const> xs, Tensor& y) {
  uint before = 0;
  for (const Tensor* x: xs) {
    eachElement(
        *x, [&](uint n, uint c, uint h, uint w) { y.at(n, before + c, h, w) = x->at(n, c, h, w); });
    before += x->shape.channels;
  }
}

void backward(const Concat&, const Tensor& dy, kj::ArrayPtr<Tensor* const> dxs) {
  uint before = 0;
  for (Tensor* dx: dxs) {
    eachElement(*dx,
        [&](uint n, uint c, uint h, uint w) { dx->at(n, c, h, w) += dy.at(n, before + c, h, w); });
    before += dx->shape.channels;
  }
}

namespace {

// Returns the target probability of class `k` in a row of this label.
double wanted(const SoftmaxCrossEntropy& op, int32_t label, uint k, uint classes) {
  double smoothing = op.smoothing;
  return (k == uint(label) ? 1 - smoothing : 0) + smoothing / classes;
}

}  // namespace

void forward(
    const SoftmaxCrossEntropy& op, const Tensor& x, kj::ArrayPtr<const int32_t> labels, Tensor& y) {
  uint classes = x.shape.channels;
  for (uint n = 0; n < x.images; ++n) {
    auto row = x.values.slice(size_t(n) * classes, size_t(n + 1) * classes);
    double largest = row[0], sum = 0;
    for (double value: row) largest = kj::max(largest, value);
    for (double value: row) sum += std::exp(value - largest);
    y.values[n] = 0;
    if (labels[n] == -1) continue;
    for (uint k = 0; k < classes; ++k) {
      y.values[n] += wanted(op, labels[n], k, classes) * (largest + std::log(sum) - row[k]);
    }
  }
}

void backward(const SoftmaxCrossEntropy& op, const Tensor& x, kj::ArrayPtr<const int32_t> labels,
    Tensor& dx) {
  uint classes = x.shape.channels;
  for (uint n = 0; n < x.images; ++n) {
    if (labels[n] == -1) continue;
    size_t begin = size_t(n) * classes;
    double largest = x.values[begin], sum = 0;
    for (uint k = 0; k < classes; ++k) largest = kj::max(largest, x.values[begin + k]);
    for (uint k = 0; k < classes; ++k) sum += std::exp(x.values[begin + k] - largest);
    for (uint k = 0; k < classes; ++k) {
      double share = std::exp(x.values[begin + k] - largest) / sum;
      dx.values[begin + k] += share - wanted(op, labels[n], k, classes);
    }
  }
}

}  // namespace reference
}  // namespace nn
