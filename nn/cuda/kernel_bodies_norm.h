// nn/cuda/kernel_bodies_norm.h: batch norm.
#pragma once

#include "nn/cuda/functions.h"
#include "nn/cuda/sums.h"

namespace nn::cuda {

// ---- forward

inline bool takesPacks(const SumMoments& k) {
  return movesInPacks(k.element, std::array{k.x});
}
inline Grid gridOf(const SumMoments& k, uint32_t pack) {
  return gridOfSums(k.x.width, pack);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const SumMoments& k, Block& block) {
  struct Origin {
    float of[N];
  };
  sumPixels<N>(
      block, k.x.pixels, k.x.width, k.partial, k.x.width,
      [&](uint32_t channel) {
        Origin origin;
        read<T>(k.x, 0, channel, origin.of);
        return origin;
      },
      [&](const Origin& origin, uint32_t pixel, uint32_t channel, float(&first)[N],
          float(&second)[N]) {
        float x[N];
        read<T>(k.x, pixel, channel, x);
        for (unsigned i = 0; i < N; i++) {
          float difference = x[i] - origin.of[i];
          first[i] += difference;
          second[i] += difference * difference;
        }
      });
}

// Sets scale and shift of a channel from its statistics. Returns 1 / sqrt(variance + epsilon).
HOST_DEVICE float fold(const NormArrays& to, uint32_t channel, const float* gamma,
    const float* beta, float mean, float variance, float epsilon) {
  float deviation = 1 / sqrtf(variance + epsilon);
  float scale = gamma == nullptr ? deviation : gamma[channel] * deviation;
  to.scale[channel] = scale;
  to.shift[channel] = beta[channel] - mean * scale;
  return deviation;
}

inline Grid gridOf(const FinishMoments& k, uint32_t) {
  return gridOfFinish(k.x.width);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const FinishMoments& k, Block& block) {
  finishSums(block, k.partial, k.x.width, [&](uint32_t channel, double first, double second) {
    if (channel >= k.x.channels) {
      k.to.scale[channel] = k.to.shift[channel] = 0;
      k.to.mean[channel] = k.to.deviation[channel] = 0;
      return;
    }
    double shifted = first / k.x.pixels;
    double difference = second / k.x.pixels - shifted * shifted;
    float mean = float(load(*placeIn<T>(k.x, 0, channel)) + shifted);
    float variance = difference < 0 ? 0 : float(difference);
    k.to.mean[channel] = mean;
    k.to.deviation[channel] = fold(k.to, channel, k.gamma, k.beta, mean, variance, k.epsilon);
    float rest = 1 - k.momentum;
    float whole = k.bias == nullptr ? mean : mean + k.bias[channel];
    k.movingMean[channel] = k.momentum * k.movingMean[channel] + rest * whole;
    k.movingVariance[channel] = k.momentum * k.movingVariance[channel] + rest * variance;
  });
}

inline Grid gridOf(const FoldMoments& k, uint32_t) {
  return gridOfPlaces(k.width);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const FoldMoments& k, Block& block) {
  eachPlace(block, k.width, 1, [&](uint32_t channel, uint32_t) {
    if (channel >= k.channels) {
      k.to.scale[channel] = k.to.shift[channel] = 0;
      return;
    }
    float mean = k.movingMean[channel];
    if (k.bias != nullptr) mean -= k.bias[channel];
    fold(k.to, channel, k.gamma, k.beta, mean, k.movingVariance[channel], k.epsilon);
  });
}

// u = x · scale + shift + residual for a pack. The caller has put x into u.
template <typename T, unsigned N>
HOST_DEVICE void normalize(const float (&scale)[N], const float (&shift)[N], const View& residual,
    uint32_t pixel, uint32_t channel, float (&u)[N]) {
  for (unsigned i = 0; i < N; i++) u[i] = u[i] * scale[i] + shift[i];
  if (residual.data == nullptr) return;
  float more[N];
  read<T>(residual, pixel, channel, more);
  for (unsigned i = 0; i < N; i++) u[i] += more[i];
}

inline bool takesPacks(const Normalize& k) {
  return movesInPacks(k.element, k.views(), {k.scale, k.shift});
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const Normalize& k, Block& block) {
  eachPack<T, N>(block, k.y, false, [&](uint32_t pixel, uint32_t channel, float(&y)[N]) {
    float scale[N], shift[N];
    read(k.scale, k.x.channels, channel, scale);
    read(k.shift, k.x.channels, channel, shift);
    read<T>(k.x, pixel, channel, y);
    normalize<T>(scale, shift, k.residual, pixel, channel, y);
    activate(k.function, y);
  });
}

// ---- backward

// g = dy · f'(u), with the u of normalize(). The caller has put x into `u`, which is overwritten.
template <typename T, unsigned N, typename K>
HOST_DEVICE void slopeOf(const K& k, const float (&scale)[N], const float (&shift)[N],
    uint32_t pixel, uint32_t channel, float (&u)[N], float (&g)[N]) {
  read<T>(k.dy, pixel, channel, g);
  if (k.function == Function::NONE) return;
  normalize<T>(scale, shift, k.residual, pixel, channel, u);
  if (k.function != Function::GELU) activate(k.function, u);
  timesSlope(k.function, u, g);
}

// The width that SumSlopes goes over. It includes the padding of `slope`, which the kernel writes.
HOST_DEVICE uint32_t widthOf(const SumSlopes& k) {
  return k.slope.data != nullptr && k.slope.width > k.x.width ? k.slope.width : k.x.width;
}

inline bool takesPacks(const SumSlopes& k) {
  return movesInPacks(k.element, std::array{k.x, k.residual, k.dy, k.slope},
      {k.norm.scale, k.norm.shift, k.norm.mean});
}
inline Grid gridOf(const SumSlopes& k, uint32_t pack) {
  return gridOfSums(widthOf(k), pack);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const SumSlopes& k, Block& block) {
  struct Norm {
    float scale[N], shift[N], mean[N];
  };
  sumPixels<N>(
      block, k.x.pixels, widthOf(k), k.partial, k.x.width,
      [&](uint32_t channel) {
        Norm norm;
        read(k.norm.scale, k.x.channels, channel, norm.scale);
        read(k.norm.shift, k.x.channels, channel, norm.shift);
        read(k.norm.mean, k.x.channels, channel, norm.mean);
        return norm;
      },
      [&](const Norm& norm, uint32_t pixel, uint32_t channel, float(&first)[N], float(&second)[N]) {
        float x[N], u[N], g[N];
        read<T>(k.x, pixel, channel, x);
        for (unsigned i = 0; i < N; i++) u[i] = x[i];
        slopeOf<T>(k, norm.scale, norm.shift, pixel, channel, u, g);
        for (unsigned i = 0; i < N; i++) {
          first[i] += g[i];
          second[i] += g[i] * (x[i] - norm.mean[i]);
        }
        if (k.slope.data != nullptr) write<T>(k.slope, pixel, channel, g, k.slopeAdds);
      });
}

inline Grid gridOf(const FinishSlopes& k, uint32_t) {
  return gridOfFinish(k.width);
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const FinishSlopes& k, Block& block) {
  finishSums(block, k.partial, k.width, [&](uint32_t channel, double slopes, double moments) {
    float* to = k.coefficients + channel;
    if (channel >= k.channels) {
      to[0] = to[k.width] = to[2 * size_t(k.width)] = 0;
      return;
    }
    double products = moments * k.norm.deviation[channel];  // sum of g · h
    k.dbeta[channel] = float(k.factor * slopes);
    if (k.dgamma != nullptr) k.dgamma[channel] = float(k.factor * products);
    double scale = k.norm.scale[channel];
    double ofX = -scale * k.norm.deviation[channel] * products / k.pixels;
    to[0] = float(scale);
    to[k.width] = float(ofX);
    to[2 * size_t(k.width)] = float(-scale * slopes / k.pixels - ofX * k.norm.mean[channel]);
  });
}

inline bool takesPacks(const NormalizeBackward& k) {
  return movesInPacks(k.element, k.views(), {k.norm.scale, k.norm.shift, k.coefficients});
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const NormalizeBackward& k, Block& block) {
  eachPack<T, N>(block, k.dx, k.adds, [&](uint32_t pixel, uint32_t channel, float(&dx)[N]) {
    float x[N], u[N], g[N], scale[N], shift[N];
    read<T>(k.x, pixel, channel, x);
    for (unsigned i = 0; i < N; i++) u[i] = x[i];
    read(k.norm.scale, k.x.channels, channel, scale);
    read(k.norm.shift, k.x.channels, channel, shift);
    slopeOf<T>(k, scale, shift, pixel, channel, u, g);
    float ofX[N], alone[N];
    read(k.coefficients + k.x.width, k.x.channels, channel, ofX);
    read(k.coefficients + 2 * size_t(k.x.width), k.x.channels, channel, alone);
    // The first coefficient is `scale`.
    for (unsigned i = 0; i < N; i++) dx[i] = scale[i] * g[i] + (ofX[i] * x[i] + alone[i]);
  });
}

}  // namespace nn::cuda
