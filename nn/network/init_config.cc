#include "nn/network/init_config.h"

#include "configs/language/word.h"

namespace nn {
namespace {

constexpr configs::Word<Initializer::Distribution> DISTRIBUTIONS[] = {
    {"uniform", "Flat in ±sqrt(magnitude / factor).", Initializer::FLAT},
    {"gaussian", "Normal with standard deviation sqrt(magnitude / factor).", Initializer::GAUSSIAN},
};

constexpr configs::Word<Initializer::Distribution> HE_DISTRIBUTIONS[] = {
    {"gaussian", "Normal with standard deviation sqrt(2 / fan_in).", Initializer::GAUSSIAN},
    {"uniform", "Flat in ±sqrt(6 / fan_in).", Initializer::FLAT},
    {"truncated",
        "Normal with sqrt(1.3 · 2 / fan_in), drawn again beyond two deviations: TensorFlow's "
        "variance_scaling_initializer.",
        Initializer::TRUNCATED},
};

constexpr configs::Word<Initializer::Factor> FACTORS[] = {
    {"fan_in", "Inputs of one output: the product of all dimensions of the weight but the first.",
        Initializer::FAN_IN},
    {"fan_out",
        "Outputs: the first dimension of the weight. The conventions `mxnet_1x` and `torch` "
        "multiply it by the area of a convolution's kernel, as MXNet does since 2016, PyTorch and "
        "Keras; `mxnet` does not, as MXNet of 2015.",
        Initializer::FAN_OUT},
    {"average", "The mean of both.", Initializer::AVERAGE},
};

Initializer readUniform(configs::Reader& reader) {
  return {.kind = Initializer::UNIFORM,
      // 0.07 is what MXNet's CIFAR-10 scripts began with.
      .scale = reader.real("scale", "Weights are drawn from ±scale.", {.above = 0}, 0.07)};
}

Initializer readNormal(configs::Reader& reader) {
  return {.kind = Initializer::NORMAL,
      .scale = reader.real("deviation", "Standard deviation.", {.above = 0}, 1)};
}

Initializer readTruncatedNormal(configs::Reader& reader) {
  return {.kind = Initializer::TRUNCATED_NORMAL,
      .scale = reader.real("deviation", "Standard deviation before the cut.", {.above = 0}, 1),
      .dividesByFanIn = reader.flag("fan_in",
          "Divides the deviation by the root of a weight's inputs: the product of all its "
          "dimensions but the first.",
          false)};
}

Initializer readHe(configs::Reader& reader) {
  Initializer result{.kind = Initializer::HE};
  result.distribution = configs::chooseWord(
      reader, "distribution", "How weights are spread.", HE_DISTRIBUTIONS, "gaussian");
  return result;
}

Initializer readXavier(configs::Reader& reader) {
  Initializer result{.kind = Initializer::XAVIER};
  result.distribution = configs::chooseWord(
      reader, "distribution", "How weights are spread.", DISTRIBUTIONS, "uniform");
  result.factor = configs::chooseWord(
      reader, "factor", "What the magnitude is divided by.", FACTORS, "average");
  result.magnitude = reader.real("magnitude",
      "Weights grow with its root; see `distribution`. MXNet's first Xavier (2015) had "
      "±sqrt(3 / (fan_in + fan_out)), which is `magnitude = 1.5` here.",
      {.above = 0}, 3);
  return result;
}

Initializer readTorch(configs::Reader&) {
  return {.kind = Initializer::TORCH};
}

Initializer readDirac(configs::Reader& reader) {
  auto result =
      reader.kind("base", "How the other weights, and biases, begin.", INITIALIZERS, "torch");
  result.identity = true;
  return result;
}

Initializer readWhitening(configs::Reader& reader) {
  Initializer result{.kind = Initializer::WHITENING};
  result.images = reader.integer("images",
      "Training images whose patches are looked at: the first ones that are trained on, or all if "
      "there are fewer, cropped at the centre. So many must fit in 1 GiB, though there may be "
      "fewer.",
      {.atLeast = 1, .atMost = 1 << 30}, 5000);
  result.epsilon = reader.real("epsilon",
      "Added to each eigenvalue of the patches, so that what hardly occurs is not blown up.",
      {.above = 0}, 5e-4);
  return result;
}

constexpr configs::Kind<Initializer> ROWS[] = {
    {"uniform", "Weights flat in ±scale, whatever their size.", readUniform},
    {"normal", "Normal weights, whatever their size.", readNormal},
    {"truncated_normal", "Normal weights, drawn again beyond two deviations, as TensorFlow's.",
        readTruncatedNormal},
    {"xavier", "Weights that keep the size of what passes through (Glorot and Bengio 2010).",
        readXavier},
    {"he",
        "Weights that keep the size of what passes through ReLUs (He et al. 2015); fan_in is the "
        "product of all dimensions of the weight but the first.",
        readHe},
    {"torch",
        "As PyTorch begins its layers: weights and biases flat in ±1 / sqrt(fan_in), biases with "
        "their weight's fan_in.",
        readTorch},
    {"dirac",
        "What passes through stays as it is: weights begin as `base` says, then the first filters, "
        "as many as there are input channels, hand on one channel each, at the kernel's centre "
        "(PyTorch's dirac_ of these filters).",
        readDirac},
    {"whitening",
        "For a convolution of the images: filters that make patches of the training images "
        "uncorrelated and of one size, each beside its negative (airbench94; Jordan 2024, arXiv "
        "2404.00498). A kernel of k×k over C channels needs 2·C·k² filters.",
        readWhitening},
};

}  // namespace

constinit const kj::ArrayPtr<const configs::Kind<Initializer>> INITIALIZERS = ROWS;

}  // namespace nn
