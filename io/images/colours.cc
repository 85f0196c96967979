// Built with -O3, so that the compiler makes vector code from the loops over pixels.
#include "io/images/colours.h"

#include <kj/debug.h>

#include <cstring>

#include "configs/language/each_instruction_set.h"

namespace io {

namespace {

constexpr uint RGB = 3;

// The weights of red, green and blue in a grey value (ITU-R BT.601), as in MXNet, Pillow and
// fb.resnet.torch.
constexpr double GREY_WEIGHTS[RGB] = {0.299, 0.587, 0.114};

// The principal components of ImageNet's RGB values, as MXNet (python/mxnet/image/image.py) and
// fb.resnet.torch (datasets/imagenet.lua, in parts of 255) publish them.
constexpr double EIGENVALUES[RGB] = {55.46, 4.794, 1.148};
// By channel, then component.
constexpr double EIGENVECTORS[RGB][RGB] = {
    {-0.5675, 0.7192, 0.4009},
    {-0.5808, -0.0045, -0.8140},
    {-0.5836, -0.6948, 0.4203},
};

// Vectors, because the compiler may not change the order of float additions.
using Floats = float __attribute__((vector_size(32)));
constexpr size_t LANES = sizeof(Floats) / sizeof(float);
constexpr size_t VECTORS = 4;
constexpr size_t AT_ONCE = VECTORS * LANES;
// This many values are added up in float32, and these sums in float64.
constexpr size_t BLOCK = 64 * AT_ONCE;

EACH_INSTRUCTION_SET
double sumOf(const float* values, size_t count) {
  double result = 0;
  size_t begin = 0;
  while (begin + AT_ONCE <= count) {
    size_t end = begin + kj::min(BLOCK, (count - begin) / AT_ONCE * AT_ONCE);
    Floats sums[VECTORS] = {};
    for (; begin < end; begin += AT_ONCE) {
      for (size_t i = 0; i < VECTORS; ++i) {
        Floats next;
        memcpy(&next, values + begin + i * LANES, sizeof(next));
        sums[i] += next;
      }
    }
    Floats sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (size_t lane = 0; lane < LANES; ++lane) result += sum[lane];
  }
  for (; begin < count; ++begin) result += values[begin];
  return result;
}

// For one channel: o' = weight · o + constant.
EACH_INSTRUCTION_SET
void mapGrey(float weight, float constant, size_t count, float* values) {
  for (size_t i = 0; i < count; ++i) values[i] = weight * values[i] + constant;
}

// For three channels: o' = weights · o + constants.
struct Map {
  float weights[RGB][RGB];
  float constants[RGB];
};

EACH_INSTRUCTION_SET
void mapColours(const Map& map, size_t count, float* __restrict__ red, float* __restrict__ green,
    float* __restrict__ blue) {
  auto local = map;
  auto mixed = [&](uint c, float r, float g, float b) __attribute__((always_inline))->float {
    auto& weights = local.weights[c];
    return (weights[0] * r + weights[1] * g) + (weights[2] * b + local.constants[c]);
  };
  for (size_t i = 0; i < count; ++i) {
    float r = red[i], g = green[i], b = blue[i];
    red[i] = mixed(0, r, g, b);
    green[i] = mixed(1, r, g, b);
    blue[i] = mixed(2, r, g, b);
  }
}

// Returns a number from [1 - spread, 1 + spread].
double factor(double spread, configs::Random& random) {
  return 1 + spread * (2 * random.uniform() - 1);
}

// Returns a number whose distribution is nearly the standard normal one: the sum of twelve uniform
// numbers has the variance 1. Not Random::normal(), because log() and cos() may differ in their
// last bit between two machines.
double nearlyNormal(configs::Random& random) {
  double sum = -6;
  for (uint i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

}  // namespace

Colours drawColours(const ColourRanges& ranges, configs::Random& random) {
  Colours result;
  result.brightness = factor(ranges.brightness, random);
  result.contrast = factor(ranges.contrast, random);
  result.saturation = factor(ranges.saturation, random);
  for (uint component = 0; component < RGB; ++component) {
    double amount = ranges.lighting * nearlyNormal(random) * EIGENVALUES[component];
    for (uint c = 0; c < RGB; ++c) result.light[c] += amount * EIGENVECTORS[c][component];
  }
  return result;
}

void changeColours(const Colours& colours, ImageShape shape, kj::ArrayPtr<const float> means,
    kj::ArrayPtr<const float> factors, kj::ArrayPtr<float> image) {
  uint channels = shape.channels;
  KJ_REQUIRE(channels == 1 || channels == RGB, channels);
  KJ_REQUIRE(image.size() == shape.size() && means.size() == channels);
  KJ_REQUIRE(factors.size() == channels);
  size_t count = image.size() / channels;
  auto weightOf = [&](uint c) { return channels == 1 ? 1 : GREY_WEIGHTS[c]; };

  // The normalised value is o = (x - mean) · factor, so that x = o / factor + mean.
  double greyOfMeans = 0;
  for (uint c = 0; c < channels; ++c) greyOfMeans += weightOf(c) * means[c];
  double meanGrey = greyOfMeans;
  if (colours.contrast != 1) {
    for (uint c = 0; c < channels; ++c) {
      double mean = sumOf(image.begin() + c * count, count) / count;
      meanGrey += weightOf(c) * mean / factors[c];
    }
  }
  double all = colours.brightness * colours.contrast, saturation = colours.saturation;
  double added = colours.brightness * (1 - colours.contrast) * meanGrey;
  Map map;
  for (uint c = 0; c < channels; ++c) {
    for (uint from = 0; from < channels; ++from) {
      double weight = (c == from ? saturation : 0) + (1 - saturation) * weightOf(from);
      map.weights[c][from] = static_cast<float>(all * weight * factors[c] / factors[from]);
    }
    double ofMean = all * (saturation * means[c] + (1 - saturation) * greyOfMeans);
    double level = ofMean + added + colours.light[c] - means[c];
    map.constants[c] = static_cast<float>(level * factors[c]);
  }
  auto planes = image.begin();
  if (channels == 1) {
    mapGrey(map.weights[0][0], map.constants[0], count, planes);
  } else {
    mapColours(map, count, planes, planes + count, planes + 2 * count);
  }
}

}  // namespace io
