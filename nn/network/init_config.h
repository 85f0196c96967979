// nn/network/init_config.h: `init` of an experiment file: the initial values of parameters.
#pragma once

#include <kj/array.h>

#include "configs/language/reader.h"

namespace nn {

using kj::uint;

// The initial values of the weights of a layer. The bias begins at 0 unless the kind says
// otherwise. Betas begin at 0, gammas at 1.
struct Initializer {
  enum Kind {
    UNIFORM,
    NORMAL,
    TRUNCATED_NORMAL,
    XAVIER,
    HE,
    // Weights and biases are uniform in ±1 / sqrt(fan in of the weight), as PyTorch initializes its
    // layers: kaiming_uniform_ with a = sqrt(5) for weights.
    TORCH,
    // See nn/network/whitening.h.
    WHITENING
  } kind = UNIFORM;
  // uniform: in ±scale. normal, truncated_normal: the deviation.
  double scale = 0;
  // truncated_normal: the deviation is scale / sqrt(fan in).
  bool dividesByFanIn = false;
  // xavier: flat in ±sqrt(magnitude / factor), or gaussian with deviation sqrt(magnitude / factor).
  // he: always about the deviation sqrt(2 / fan in) (He et al. 2015, equation 10).
  //   gaussian   with this deviation
  //   flat       in ±sqrt(6 / fan in)
  //   truncated  with deviation sqrt(1.3 · 2 / fan in) before the cut (TensorFlow's
  //              variance_scaling_initializer)
  // Truncated, also in truncated_normal: values beyond two deviations are drawn again.
  enum Distribution { FLAT, GAUSSIAN, TRUNCATED } distribution = FLAT;
  // xavier. The fan in is the product of all dimensions of a weight but the first. The fan out is
  // the first dimension, times the kernel's area if Graph::fanOutHasKernelArea. AVERAGE is the mean
  // of both.
  enum Factor { FAN_IN, FAN_OUT, AVERAGE } factor = AVERAGE;
  double magnitude = 3;
  // Afterwards the first min(filters, input channels) filters become the identity: 1 at the centre
  // of their own channel, 0 elsewhere. In an even kernel, the 1 is right of the centre and below
  // it. A dense layer is a kernel of 1.
  bool identity = false;
  // whitening: how many images it uses, and the number that it adds to each eigenvalue.
  uint images = 0;
  double epsilon = 0;

  bool operator==(const Initializer&) const = default;
};

// The most values that a patch for whitening may have. The matrix of second moments has the square
// of this number.
constexpr uint WHITENED_VALUES_MAX = 1024;

// `init = { kind = "…" }`
extern const kj::ArrayPtr<const configs::Kind<Initializer>> INITIALIZERS;

}  // namespace nn
