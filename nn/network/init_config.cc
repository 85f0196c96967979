#include "nn/network/init_config.h"

#include "configs/language/word.h"

namespace nn {
namespace {

constexpr configs::Word<Initializer::Distribution> DISTRIBUTIONS[] = {
    {"uniform", "Uniform in ±sqrt(magnitude / factor).", Initializer::FLAT},
    {"gaussian", "Normal with standard deviation sqrt(magnitude / factor).", Initializer::GAUSSIAN},
};

constexpr configs::Word<Initializer::Distribution> HE_DISTRIBUTIONS[] = {
    {"gaussian", "Normal with standard deviation sqrt(2 / fan_in).", Initializer::GAUSSIAN},
    {"uniform", "Uniform in ±sqrt(6 / fan_in).", Initializer::FLAT},
    {"truncated",
        "Normal with standard deviation sqrt(1.3 · 2 / fan_in). Values beyond two standard "
        "deviations are drawn again, as in TensorFlow's variance_scaling_initializer.",
        Initializer::TRUNCATED},
};

constexpr configs::Word<Initializer::Factor> FACTORS[] = {
    {"fan_in",
        "The number of inputs of each output: the product of all dimensions of the weight except "
        "the first.",
        Initializer::FAN_IN},
    {"fan_out",
        "The number of outputs: the first dimension of the weight. With the conventions `mxnet_1x` "
        "and `torch`, this number is multiplied by the area of a convolution's kernel, as in MXNet "
        "since 2016, PyTorch and Keras. With `mxnet` it is not multiplied, as in MXNet of 2015.",
        Initializer::FAN_OUT},
    {"average", "The mean of `fan_in` and `fan_out`.", Initializer::AVERAGE},
};

Initializer readUniform(configs::Reader& reader) {
  return {.kind = Initializer::UNIFORM,
      // 0.07 is the value in MXNet's CIFAR-10 scripts.
      .scale = reader.real(
          "scale", "Weights are drawn uniformly between -scale and scale.", {.above = 0}, 0.07)};
}

Initializer readNormal(configs::Reader& reader) {
  return {.kind = Initializer::NORMAL,
      .scale = reader.real("deviation", "Standard deviation of the weights.", {.above = 0}, 1)};
}

Initializer readTruncatedNormal(configs::Reader& reader) {
  return {.kind = Initializer::TRUNCATED_NORMAL,
      .scale = reader.real("deviation",
          "Standard deviation of the weights before large values are drawn again.", {.above = 0},
          1),
      .dividesByFanIn = reader.flag("fan_in",
          "Divides the deviation by the square root of the number of inputs of each output: the "
          "product of all dimensions of the weight except the first.",
          false)};
}

Initializer readHe(configs::Reader& reader) {
  Initializer result{.kind = Initializer::HE};
  result.distribution = configs::chooseWord(reader, "distribution",
      "The distribution that weights are drawn from.", HE_DISTRIBUTIONS, "gaussian");
  return result;
}

Initializer readXavier(configs::Reader& reader) {
  Initializer result{.kind = Initializer::XAVIER};
  result.distribution = configs::chooseWord(reader, "distribution",
      "The distribution that weights are drawn from.", DISTRIBUTIONS, "uniform");
  result.factor = configs::chooseWord(
      reader, "factor", "The number by which the magnitude is divided.", FACTORS, "average");
  result.magnitude = reader.real("magnitude",
      "Weights grow with the square root of this number, as `distribution` shows. MXNet's first "
      "Xavier (2015) drew from ±sqrt(3 / (fan_in + fan_out)), which is `magnitude = 1.5` here.",
      {.above = 0}, 3);
  return result;
}

Initializer readTorch(configs::Reader&) {
  return {.kind = Initializer::TORCH};
}

Initializer readDirac(configs::Reader& reader) {
  auto result = reader.kind(
      "base", "The initial values of the other weights, and of biases.", INITIALIZERS, "torch");
  result.identity = true;
  return result;
}

Initializer readWhitening(configs::Reader& reader) {
  Initializer result{.kind = Initializer::WHITENING};
  result.images = reader.integer("images",
      "Number of training images whose patches are analysed: the first ones used for training, or "
      "all if there are fewer, cropped at the centre. This many images must fit in 1 GiB, even if "
      "the data set has fewer.",
      {.atLeast = 1, .atMost = 1 << 30}, 5000);
  result.epsilon = reader.real("epsilon",
      "Added to each eigenvalue of the patches, so that rare patterns are not amplified too much.",
      {.above = 0}, 5e-4);
  return result;
}

constexpr configs::Kind<Initializer> ROWS[] = {
    {"uniform",
        "Uniformly distributed weights between -scale and scale, for weights of every shape.",
        readUniform},
    {"normal",
        "Normally distributed weights with the same standard deviation for weights of every shape.",
        readNormal},
    {"truncated_normal",
        "Normally distributed weights. Values beyond two standard deviations are drawn again, as "
        "in TensorFlow.",
        readTruncatedNormal},
    {"xavier",
        "Weights with which activations and gradients have the same variance in all layers (Glorot "
        "and Bengio 2010).",
        readXavier},
    {"he",
        "Weights with which activations have the same variance in all layers of a network with "
        "ReLUs (He et al. 2015). fan_in is the product of all dimensions of the weight except the "
        "first.",
        readHe},
    {"torch",
        "Initial values as in PyTorch: weights and biases are uniform in ±1 / sqrt(fan_in). Biases "
        "use the fan_in of their weight.",
        readTorch},
    {"dirac",
        "For a convolution that begins by copying its input. Weights begin as `base` says. If "
        "there are C input channels, each of the first C filters is then replaced: filter c copies "
        "channel c (PyTorch's dirac_, applied to these filters).",
        readDirac},
    {"whitening",
        "For a convolution over the input images: filters that whiten patches of the training "
        "images, that is, make them uncorrelated and of equal variance. The negative of each "
        "filter is a filter, too (airbench94; Jordan 2024, arXiv 2404.00498). A kernel of k×k over "
        "C channels needs 2·C·k² filters.",
        readWhitening},
};

}  // namespace

constinit const kj::ArrayPtr<const configs::Kind<Initializer>> INITIALIZERS = ROWS;

}  // namespace nn
