// nn/cpu/kernels_body.h: the loops of nn/cpu/kernels.h as templates over a vector type; each
// instruction set's file instantiates them with its own.
#pragma once

#include <string.h>

#include "nn/cpu/kernels.h"

namespace nn::cpu {

// `S` is a vector type's operations: WIDTH, Vector, Mask, load, store, …; see kernels_avx2.cc.
template <typename S>
struct Loops {
  using V = typename S::Vector;
  using M = typename S::Mask;
  static constexpr size_t B = S::WIDTH;

  // e^x = 2^n · (1 + rest), rest in [-0.3, 0.42].
  struct Power {
    V scale;  // 2^n
    V rest;
  };

  // For x in [-88, 88], after Cephes' expf: x = n·ln 2 + r, a polynomial in r for e^r - 1, and 2^n
  // by the exponent's bits.
  static Power power(V x) {
    V n = S::round(S::mul(x, S::set(1.44269504f)));
    V r = S::negatedFma(n, S::set(0.693359375f), x);
    r = S::fma(n, S::set(2.12194440e-4f), r);
    V p = S::set(1.9875691500e-4f);
    p = S::fma(p, r, S::set(1.3981999507e-3f));
    p = S::fma(p, r, S::set(8.3334519073e-3f));
    p = S::fma(p, r, S::set(4.1665795894e-2f));
    p = S::fma(p, r, S::set(1.6666665459e-1f));
    p = S::fma(p, r, S::set(5.0000001201e-1f));
    return {S::powerOfTwo(n), S::fma(p, S::mul(r, r), r)};
  }

  // e^x for x in [-88, 88].
  static V exponential(V x) {
    Power e = power(x);
    return S::mul(S::add(e.rest, S::set(1.0f)), e.scale);
  }

  // The normal distribution at x.
  struct Normal {
    V below;   // the probability of less than x
    V height;  // e^(-x²/2)
  };

  // With 1 - erf(z) = e^(-z²) · a polynomial in 1 / (1 + p·z), z ≥ 0, to 1.5e-7 (Abramowitz and
  // Stegun 1964, 7.1.26).
  static Normal normal(V x) {
    V size = S::max(x, S::sub(S::zero(), x));
    V t = S::div(S::set(1.0f), S::fma(size, S::set(0.3275911f * 0.70710678f), S::set(1.0f)));
    V p = S::set(1.061405429f);
    p = S::fma(p, t, S::set(-1.453152027f));
    p = S::fma(p, t, S::set(1.421413741f));
    p = S::fma(p, t, S::set(-0.284496736f));
    p = S::fma(p, t, S::set(0.254829592f));
    V height = exponential(S::max(S::set(-88.0f), S::mul(S::mul(x, x), S::set(-0.5f))));
    V beyond = S::mul(S::mul(S::mul(p, t), S::set(0.5f)), height);
    V below = S::select(S::greater(x, S::zero()), S::sub(S::set(1.0f), beyond), beyond);
    return {below, height};
  }

  static V geluSlope(V x) {
    Normal at = normal(x);
    return S::fma(S::mul(x, at.height), S::set(0.39894228f), at.below);
  }

  template <After after>
  static V finish(V z) {
    if (after == After::RELU) return S::max(z, S::zero());
    if (after == After::GELU) return S::mul(z, normal(z).below);
    return z;
  }

  template <After after>
  static void normaliseAs(
      const float* y, const Channels& channels, float* out, size_t blocks, size_t pixels) {
    for (size_t c = 0; c < blocks; c++) {
      V scale = S::load(channels.scale + c * B), shift = S::load(channels.shift + c * B);
      for (size_t i = 0; i < pixels; i++, y += B, out += B) {
        S::store(out, finish<after>(S::fma(S::load(y), scale, shift)));
      }
    }
  }

  static void normalise(const float* y, const Channels& channels, After after, float* out,
      size_t blocks, size_t pixels) {
    auto loop = after == After::RELU   ? normaliseAs<After::RELU>
                : after == After::GELU ? normaliseAs<After::GELU>
                                       : normaliseAs<After::NOTHING>;
    loop(y, channels, out, blocks, pixels);
  }

  static void statistics(const float* y, float* partial, size_t blocks, size_t pixels) {
    for (size_t c = 0; c < blocks; c++, y += pixels * B, partial += 2 * B) {
      // One pass: sums of distances from the first pixel, which is near enough to the mean to lose
      // no digits. Two accumulators each, because one chain of additions is slower than the loads.
      V shift = S::load(y);
      V sum0 = S::zero(), sum1 = S::zero(), square0 = S::zero(), square1 = S::zero();
      size_t i = 0;
      for (; i + 2 <= pixels; i += 2) {
        V a = S::sub(S::load(y + i * B), shift), b = S::sub(S::load(y + i * B + B), shift);
        sum0 = S::add(sum0, a);
        sum1 = S::add(sum1, b);
        square0 = S::fma(a, a, square0);
        square1 = S::fma(b, b, square1);
      }
      if (i < pixels) {
        V a = S::sub(S::load(y + i * B), shift);
        sum0 = S::add(sum0, a);
        square0 = S::fma(a, a, square0);
      }
      V sum = S::add(sum0, sum1);
      V mean = S::mul(sum, S::set(1.0f / float(pixels)));
      S::store(partial, S::add(shift, mean));
      S::store(partial + B, S::max(S::sub(S::add(square0, square1), S::mul(mean, sum)), S::zero()));
    }
  }

  static void combineStatistics(const float* partial, size_t images, size_t stride, size_t pixels,
      float* mean, float* variance) {
    V sum = S::zero();
    for (size_t n = 0; n < images; n++) sum = S::add(sum, S::load(partial + n * stride));
    V all = S::mul(sum, S::set(1.0f / float(images)));
    V within = S::zero(), between = S::zero();
    for (size_t n = 0; n < images; n++) {
      V distance = S::sub(S::load(partial + n * stride), all);
      between = S::fma(distance, distance, between);
      within = S::add(within, S::load(partial + n * stride + B));
    }
    S::store(mean, all);
    S::store(variance, S::add(S::mul(between, S::set(1.0f / float(images))),
                           S::mul(within, S::set(1.0f / (float(images) * float(pixels))))));
  }

  // The gradient of z = scale·y + shift, from that of what follows it.
  template <After after>
  static V passed(V y, V gradient, V scale, V shift) {
    if (after == After::NOTHING) return gradient;
    V z = S::fma(y, scale, shift);
    if (after == After::GELU) return S::mul(gradient, geluSlope(z));
    return S::select(S::greater(z, S::zero()), gradient, S::zero());
  }

  template <After after>
  static void reduceGradientAs(const float* y, const float* gradient, const Channels& channels,
      float* partial, size_t blocks, size_t pixels) {
    for (size_t c = 0; c < blocks; c++, y += pixels * B, gradient += pixels * B, partial += 2 * B) {
      V scale = S::load(channels.scale + c * B), shift = S::load(channels.shift + c * B);
      V mean = S::load(channels.mean + c * B);
      V sum0 = S::zero(), sum1 = S::zero(), product0 = S::zero(), product1 = S::zero();
      size_t i = 0;
      for (; i + 2 <= pixels; i += 2) {
        V y0 = S::load(y + i * B), y1 = S::load(y + i * B + B);
        V g0 = passed<after>(y0, S::load(gradient + i * B), scale, shift);
        V g1 = passed<after>(y1, S::load(gradient + i * B + B), scale, shift);
        sum0 = S::add(sum0, g0);
        sum1 = S::add(sum1, g1);
        product0 = S::fma(g0, S::sub(y0, mean), product0);
        product1 = S::fma(g1, S::sub(y1, mean), product1);
      }
      if (i < pixels) {
        V y0 = S::load(y + i * B);
        V g0 = passed<after>(y0, S::load(gradient + i * B), scale, shift);
        sum0 = S::add(sum0, g0);
        product0 = S::fma(g0, S::sub(y0, mean), product0);
      }
      S::store(partial, S::add(sum0, sum1));
      S::store(partial + B, S::add(product0, product1));
    }
  }

  static void reduceGradient(const float* y, const float* gradient, const Channels& channels,
      After after, float* partial, size_t blocks, size_t pixels) {
    auto loop = after == After::RELU   ? reduceGradientAs<After::RELU>
                : after == After::GELU ? reduceGradientAs<After::GELU>
                                       : reduceGradientAs<After::NOTHING>;
    loop(y, gradient, channels, partial, blocks, pixels);
  }

  static void sumPartials(
      const float* partial, size_t images, size_t stride, float* first, float* second) {
    V a = S::zero(), b = S::zero();
    for (size_t n = 0; n < images; n++, partial += stride) {
      a = S::add(a, S::load(partial));
      b = S::add(b, S::load(partial + B));
    }
    S::store(first, a);
    S::store(second, b);
  }

  template <After after, Write write>
  static void normaliseBackwardAs(const float* y, const float* gradient, const Channels& channels,
      float* dy, size_t blocks, size_t pixels) {
    for (size_t c = 0; c < blocks; c++) {
      V scale = S::load(channels.scale + c * B), shift = S::load(channels.shift + c * B);
      V mean = S::load(channels.mean + c * B), slope = S::load(channels.slope + c * B);
      V meanGradient = S::load(channels.meanGradient + c * B);
      for (size_t i = 0; i < pixels; i++, y += B, gradient += B, dy += B) {
        V value = S::load(y);
        V g = passed<after>(value, S::load(gradient), scale, shift);
        V r = S::negatedFma(S::sub(value, mean), slope, S::sub(g, meanGradient));
        S::store(dy, write == Write::ADD ? S::fma(r, scale, S::load(dy)) : S::mul(r, scale));
      }
    }
  }

  template <Write write>
  static void normaliseBackwardInto(const float* y, const float* gradient, const Channels& channels,
      After after, float* dy, size_t blocks, size_t pixels) {
    auto loop = after == After::RELU   ? normaliseBackwardAs<After::RELU, write>
                : after == After::GELU ? normaliseBackwardAs<After::GELU, write>
                                       : normaliseBackwardAs<After::NOTHING, write>;
    loop(y, gradient, channels, dy, blocks, pixels);
  }

  static void normaliseBackward(const float* y, const float* gradient, const Channels& channels,
      After after, float* dy, Write write, size_t blocks, size_t pixels) {
    auto loop =
        write == Write::SET ? normaliseBackwardInto<Write::SET> : normaliseBackwardInto<Write::ADD>;
    loop(y, gradient, channels, after, dy, blocks, pixels);
  }

  static void relu(float* x, size_t count) {
    for (size_t i = 0; i < count; i += B) S::store(x + i, S::max(S::load(x + i), S::zero()));
  }

  static void reluBackward(const float* y, float* gradient, size_t count) {
    for (size_t i = 0; i < count; i += B) {
      M open = S::greater(S::load(y + i), S::zero());
      S::store(gradient + i, S::select(open, S::load(gradient + i), S::zero()));
    }
  }

  // After Cephes' tanhf: an odd polynomial near 0, where 1 - 2 / (e^2x + 1) would cancel.
  static void tanh(float* x, size_t count) {
    for (size_t i = 0; i < count; i += B) {
      V v = S::load(x + i);
      V size = S::max(v, S::sub(S::zero(), v));
      V square = S::mul(v, v);
      V p = S::set(-5.70498872745e-3f);
      p = S::fma(p, square, S::set(2.06390887954e-2f));
      p = S::fma(p, square, S::set(-5.37397155531e-2f));
      p = S::fma(p, square, S::set(1.33314422036e-1f));
      p = S::fma(p, square, S::set(-3.33332819422e-1f));
      V near = S::fma(S::mul(p, square), v, v);
      // Beyond 10 the nearest float is 1.
      V e = exponential(S::mul(S::set(2.0f), S::min(size, S::set(10.0f))));
      V far = S::sub(S::set(1.0f), S::div(S::set(2.0f), S::add(e, S::set(1.0f))));
      far = S::select(S::greater(S::zero(), v), S::sub(S::zero(), far), far);
      // Not a number goes the near way, which keeps it.
      S::store(x + i, S::select(S::greater(size, S::set(0.625f)), far, near));
    }
  }

  static void tanhBackward(const float* y, float* gradient, size_t count) {
    for (size_t i = 0; i < count; i += B) {
      V v = S::load(y + i);
      V slope = S::negatedFma(v, v, S::set(1.0f));
      S::store(gradient + i, S::mul(S::load(gradient + i), slope));
    }
  }

  // Beyond ±88 the nearest float is 1, or below 1e-38. What is not a number stays so: min and max
  // give their second argument then.
  static void sigmoid(float* x, size_t count) {
    for (size_t i = 0; i < count; i += B) {
      V v = S::min(S::set(88.0f), S::max(S::set(-88.0f), S::load(x + i)));
      V e = exponential(S::sub(S::zero(), v));
      S::store(x + i, S::div(S::set(1.0f), S::add(S::set(1.0f), e)));
    }
  }

  static void sigmoidBackward(const float* y, float* gradient, size_t count) {
    for (size_t i = 0; i < count; i += B) {
      V v = S::load(y + i);
      S::store(gradient + i, S::mul(S::load(gradient + i), S::negatedFma(v, v, v)));
    }
  }

  // e^x - 1 = 2^n · rest + (2^n - 1), where nothing cancels: near 0 n is 0. Below -88 the nearest
  // float is -1. What is not a number goes the lower way, which keeps it.
  static void elu(float* x, size_t count) {
    for (size_t i = 0; i < count; i += B) {
      V v = S::load(x + i);
      Power e = power(S::min(S::zero(), S::max(S::set(-88.0f), v)));
      V below = S::fma(e.scale, e.rest, S::sub(e.scale, S::set(1.0f)));
      S::store(x + i, S::select(S::greater(v, S::zero()), v, below));
    }
  }

  static void eluBackward(const float* y, float* gradient, size_t count) {
    for (size_t i = 0; i < count; i += B) {
      V v = S::load(y + i), g = S::load(gradient + i);
      S::store(gradient + i, S::select(S::greater(v, S::zero()), g, S::fma(g, v, g)));
    }
  }

  static void gelu(const float* from, float* to, size_t count) {
    for (size_t i = 0; i < count; i += B) {
      S::store(to + i, finish<After::GELU>(S::load(from + i)));
    }
  }

  template <Write write>
  static void geluBackwardAs(const float* x, const float* gradient, float* dx, size_t count) {
    for (size_t i = 0; i < count; i += B) {
      V slope = geluSlope(S::load(x + i)), g = S::load(gradient + i);
      V old = write == Write::ADD ? S::load(dx + i) : S::zero();
      S::store(dx + i, S::fma(slope, g, old));
    }
  }

  static void geluBackward(
      const float* x, const float* gradient, float* dx, Write write, size_t count) {
    auto loop = write == Write::SET ? geluBackwardAs<Write::SET> : geluBackwardAs<Write::ADD>;
    loop(x, gradient, dx, count);
  }

  // Values scaled up, without those that the mask takes away: see nn/dropout.h.
  static V kept(V x, typename S::Words index, const DropoutMask& mask) {
    auto h = index ^ mask.first;
    h = (h ^ h >> 16) * 0x7feb352du;
    h = (h ^ h >> 15) + mask.second;
    h *= 0x846ca68bu;
    h ^= h >> 16;
    M isDropped = S::greater(S::set(float(mask.threshold)), S::number(h >> 8));
    return S::select(isDropped, S::zero(), S::mul(x, S::set(mask.scale)));
  }

  // The words 0, step, 2·step, …
  static typename S::Words wordsBy(size_t step) {
    typename S::Words words;
    for (size_t lane = 0; lane < B; lane++) words[lane] = uint32_t(lane * step);
    return words;
  }

  template <Write write>
  static void dropAs(
      const float* from, const DropoutMask& mask, float* to, size_t blocks, size_t pixels) {
    auto index = wordsBy(pixels);  // of a block's first pixel
    for (size_t c = 0; c < blocks; c++, index += uint32_t(B * pixels)) {
      for (size_t i = 0; i < pixels; i++, from += B, to += B) {
        V value = kept(S::load(from), index + uint32_t(i), mask);
        S::store(to, write == Write::ADD ? S::add(S::load(to), value) : value);
      }
    }
  }

  static void drop(const float* from, const DropoutMask& mask, float* to, Write write,
      size_t blocks, size_t pixels) {
    auto loop = write == Write::SET ? dropAs<Write::SET> : dropAs<Write::ADD>;
    loop(from, mask, to, blocks, pixels);
  }

  static void dropRow(const float* from, const DropoutMask& mask, float* to, size_t count) {
    auto index = wordsBy(1);
    size_t i = 0;
    for (; i + B <= count; i += B, index += uint32_t(B)) {
      S::store(to + i, kept(S::load(from + i), index, mask));
    }
    if (i == count) return;
    float rest[B] = {};
    memcpy(rest, from + i, (count - i) * sizeof(float));
    S::store(rest, kept(S::load(rest), index, mask));
    memcpy(to + i, rest, (count - i) * sizeof(float));
  }

  // The part of a window that lies inside the image: rows and columns relative to the window's
  // corner.
  struct Clip {
    int top, left;  // the window's corner in the image
    int rowBegin, rowEnd, columnBegin, columnEnd;

    Clip(const Window& w, size_t row, size_t column)
        : top(int(row * w.stride) - int(w.pad)), left(int(column * w.stride) - int(w.pad)) {
      rowBegin = top < 0 ? -top : 0;
      columnBegin = left < 0 ? -left : 0;
      rowEnd = int(w.inHeight) - top < int(w.kernel) ? int(w.inHeight) - top : int(w.kernel);
      columnEnd = int(w.inWidth) - left < int(w.kernel) ? int(w.inWidth) - left : int(w.kernel);
    }
    size_t at(const Window& w, int u, int v) const {
      return (size_t(top + u) * w.inWidth + size_t(left + v)) * B;
    }
  };

  static void maxPool(const float* x, const Window& w, float* out, uint16_t* index, size_t blocks) {
    for (size_t c = 0; c < blocks; c++, x += size_t(w.inHeight) * w.inWidth * B) {
      for (size_t row = 0; row < w.outHeight; row++) {
        for (size_t column = 0; column < w.outWidth; column++, out += B, index += B) {
          Clip clip(w, row, column);
          V best = S::load(x + clip.at(w, clip.rowBegin, clip.columnBegin));
          V place = S::set(float(clip.rowBegin * int(w.kernel) + clip.columnBegin));
          for (int u = clip.rowBegin; u < clip.rowEnd; u++) {
            for (int v = clip.columnBegin; v < clip.columnEnd; v++) {
              V value = S::load(x + clip.at(w, u, v));
              M more = S::greater(value, best);
              best = S::select(more, value, best);
              place = S::select(more, S::set(float(u * int(w.kernel) + v)), place);
            }
          }
          S::store(out, best);
          S::storeIndex(index, place);
        }
      }
    }
  }

  static void maxPoolBackward(
      const float* gradient, const uint16_t* index, const Window& w, float* dx, size_t blocks) {
    for (size_t c = 0; c < blocks; c++, dx += size_t(w.inHeight) * w.inWidth * B) {
      for (size_t row = 0; row < w.outHeight; row++) {
        for (size_t column = 0; column < w.outWidth; column++, gradient += B, index += B) {
          Clip clip(w, row, column);
          V g = S::load(gradient), place = S::loadIndex(index);
          for (int u = clip.rowBegin; u < clip.rowEnd; u++) {
            for (int v = clip.columnBegin; v < clip.columnEnd; v++) {
              M here = S::equal(place, S::set(float(u * int(w.kernel) + v)));
              if (S::none(here)) continue;
              float* to = dx + clip.at(w, u, v);
              S::store(to, S::add(S::load(to), S::select(here, g, S::zero())));
            }
          }
        }
      }
    }
  }

  static void averagePool(const float* x, const Window& w, float* out, size_t blocks) {
    V share = S::set(1.0f / (float(w.kernel) * float(w.kernel)));
    for (size_t c = 0; c < blocks; c++, x += size_t(w.inHeight) * w.inWidth * B) {
      for (size_t row = 0; row < w.outHeight; row++) {
        for (size_t column = 0; column < w.outWidth; column++, out += B) {
          Clip clip(w, row, column);
          V sum = S::zero();
          for (int u = clip.rowBegin; u < clip.rowEnd; u++) {
            for (int v = clip.columnBegin; v < clip.columnEnd; v++) {
              sum = S::add(sum, S::load(x + clip.at(w, u, v)));
            }
          }
          S::store(out, S::mul(sum, share));
        }
      }
    }
  }

  static void averagePoolBackward(
      const float* gradient, const Window& w, float* dx, size_t blocks) {
    V share = S::set(1.0f / (float(w.kernel) * float(w.kernel)));
    for (size_t c = 0; c < blocks; c++, dx += size_t(w.inHeight) * w.inWidth * B) {
      for (size_t row = 0; row < w.outHeight; row++) {
        for (size_t column = 0; column < w.outWidth; column++, gradient += B) {
          Clip clip(w, row, column);
          V g = S::mul(S::load(gradient), share);
          for (int u = clip.rowBegin; u < clip.rowEnd; u++) {
            for (int v = clip.columnBegin; v < clip.columnEnd; v++) {
              float* to = dx + clip.at(w, u, v);
              S::store(to, S::add(S::load(to), g));
            }
          }
        }
      }
    }
  }

  static bool isInside(const Clip& clip, int u, int v) {
    return u >= clip.rowBegin && u < clip.rowEnd && v >= clip.columnBegin && v < clip.columnEnd;
  }

  static void gatherWindows(
      const float* x, const Window& w, size_t channels, size_t begin, size_t end, float* rows) {
    size_t blocks = (channels + B - 1) / B, plane = size_t(w.inHeight) * w.inWidth * B;
    for (size_t pixel = begin; pixel < end; pixel++) {
      Clip clip(w, pixel / w.outWidth, pixel % w.outWidth);
      for (int u = 0; u < int(w.kernel); u++) {
        for (int v = 0; v < int(w.kernel); v++, rows += channels) {
          // What the last block has too much is overwritten by the next one.
          if (isInside(clip, u, v)) {
            const float* from = x + clip.at(w, u, v);
            for (size_t c = 0; c < blocks; c++) S::store(rows + c * B, S::load(from + c * plane));
          } else {
            for (size_t c = 0; c < blocks; c++) S::store(rows + c * B, S::zero());
          }
        }
      }
    }
  }

  static void scatterWindows(
      const float* rows, const Window& w, size_t channels, size_t begin, size_t end, float* x) {
    static constexpr float LANES[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    size_t last = (channels - 1) / B, plane = size_t(w.inHeight) * w.inWidth * B;
    M isChannel = S::greater(S::set(float(channels - last * B)), S::load(LANES));
    for (size_t pixel = begin; pixel < end; pixel++) {
      Clip clip(w, pixel / w.outWidth, pixel % w.outWidth);
      for (int u = 0; u < int(w.kernel); u++) {
        for (int v = 0; v < int(w.kernel); v++, rows += channels) {
          if (!isInside(clip, u, v)) continue;
          float* to = x + clip.at(w, u, v);
          for (size_t c = 0; c < last; c++, to += plane) {
            S::store(to, S::add(S::load(to), S::load(rows + c * B)));
          }
          V value = S::select(isChannel, S::load(rows + last * B), S::zero());
          S::store(to, S::add(S::load(to), value));
        }
      }
    }
  }

  static void scale(const float* from, float factor, float* to, Write write, size_t count) {
    V by = S::set(factor);
    for (size_t i = 0; i < count; i += B) {
      V old = write == Write::ADD ? S::load(to + i) : S::zero();
      S::store(to + i, S::fma(by, S::load(from + i), old));
    }
  }

  static void copy(const float* from, float* to, Write write, size_t count) {
    if (write == Write::SET) {
      memcpy(to, from, count * sizeof(float));
      return;
    }
    size_t i = 0;
    for (; i + B <= count; i += B) S::store(to + i, S::add(S::load(to + i), S::load(from + i)));
    for (; i < count; i++) to[i] += from[i];
  }

  static constexpr Kernels TABLE = {
      .block = B,
      .normalise = normalise,
      .statistics = statistics,
      .combineStatistics = combineStatistics,
      .reduceGradient = reduceGradient,
      .sumPartials = sumPartials,
      .normaliseBackward = normaliseBackward,
      .relu = {.forward = relu, .backward = reluBackward},
      .tanh = {.forward = tanh, .backward = tanhBackward},
      .sigmoid = {.forward = sigmoid, .backward = sigmoidBackward},
      .elu = {.forward = elu, .backward = eluBackward},
      .gelu = gelu,
      .geluBackward = geluBackward,
      .drop = drop,
      .dropRow = dropRow,
      .maxPool = maxPool,
      .maxPoolBackward = maxPoolBackward,
      .averagePool = averagePool,
      .averagePoolBackward = averagePoolBackward,
      .gatherWindows = gatherWindows,
      .scatterWindows = scatterWindows,
      .scale = scale,
      .copy = copy,
  };
};

}  // namespace nn::cpu
