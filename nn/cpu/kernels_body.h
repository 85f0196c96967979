// nn/cpu/kernels_body.h: the loops of nn/cpu/kernels.h as templates over a vector type and the type
// of values. The file of each instruction set instantiates them.
#pragma once

#include <string.h>

#include "nn/cpu/kernels_math.h"
#include "nn/cpu/kernels_planes.h"
#include "nn/cpu/kernels_windows.h"

namespace nn::cpu {

// Loops over arrays that are always floats.
template <typename S>
struct FloatLoops {
  using Math = VectorMath<S>;
  using V = typename S::Vector;
  static constexpr size_t B = S::WIDTH;

  static void combineStatistics(const float* partial, size_t images, float last, size_t stride,
      size_t pixels, float* mean, float* variance) {
    float count = float(images - 1) + last;
    V sum = S::zero();
    for (size_t n = 0; n + 1 < images; n++) sum = S::add(sum, S::load(partial + n * stride));
    const float* end = partial + (images - 1) * stride;
    sum = S::add(sum, S::mul(S::load(end), S::set(last)));
    V all = S::mul(sum, S::set(1.0f / count));
    V within = S::zero(), between = S::zero();
    for (size_t n = 0; n < images; n++) {
      V distance = S::sub(S::load(partial + n * stride), all);
      V weighted = n + 1 == images ? S::mul(distance, S::set(last)) : distance;
      between = S::fma(weighted, distance, between);
      within = S::add(within, S::load(partial + n * stride + B));
    }
    S::store(mean, all);
    S::store(variance, S::add(S::mul(between, S::set(1.0f / count)),
                           S::mul(within, S::set(1.0f / (count * float(pixels))))));
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

  static void dropRow(const float* from, const DropoutMask& mask, float* to, size_t count) {
    auto index = Math::wordsBy(1);
    size_t i = 0;
    for (; i + B <= count; i += B, index += uint32_t(B)) {
      S::store(to + i, Math::kept(S::load(from + i), index, mask));
    }
    if (i == count) return;
    float rest[B] = {};
    memcpy(rest, from + i, (count - i) * sizeof(float));
    S::store(rest, Math::kept(S::load(rest), index, mask));
    memcpy(to + i, rest, (count - i) * sizeof(float));
  }
};

// Loops over values of type E. S loads them as vectors of floats, and stores vectors of floats as
// E. GROUP images lie together, pixel by pixel.
template <typename S, typename E, size_t GROUP = 1>
struct Loops {
  using Math = VectorMath<S>;
  using Windows = WindowLoops<S, E>;
  using V = typename S::Vector;
  using M = typename S::Mask;
  static constexpr size_t B = S::WIDTH;

  // Prefetches values that a loop needs soon. Values from other tasks are in the slow cache that
  // all cores share. Without this, the loop would wait for each cache line.
  static void ahead(const E* p) { __builtin_prefetch(far(p)); }
  static void aheadToWrite(const E* p) { __builtin_prefetch(far(p), 1); }
  static const char* far(const E* p) {
    constexpr size_t DISTANCE_BYTES = 4096;
    return reinterpret_cast<const char*>(p) + DISTANCE_BYTES;
  }

  // NaN stays NaN, here and below, because max returns its second argument if one is NaN. A run
  // that diverged must not look like a run that learned nothing.
  static V positive(V z) { return S::max(S::zero(), z); }

  // Where the pixels of the first `images` images of a group lie in a block, one pixel of one image
  // after another.
  template <bool isWhole>
  struct Pixels {
    size_t count, images;

    size_t at(size_t i) const { return isWhole ? i * B : (i / images * GROUP + i % images) * B; }
  };
  // Calls work() with the Pixels of the first `images` images of a group.
  template <typename Work>
  static void withPixels(size_t pixels, size_t images, Work work) {
    if (GROUP == 1 || images == GROUP) {
      work(Pixels<true>{pixels * GROUP, GROUP});
    } else {
      work(Pixels<false>{pixels * images, images});
    }
  }

  template <After after>
  static V finish(V z) {
    if (after == After::RELU) return positive(z);
    if (after == After::GELU) return Math::gelu(z);
    return z;
  }

  template <After after>
  static void normaliseAs(
      const E* y, const Channels& channels, E* out, size_t blocks, size_t pixels) {
    for (size_t c = 0; c < blocks; c++) {
      V scale = S::load(channels.scale + c * B), shift = S::load(channels.shift + c * B);
      for (size_t i = 0; i < pixels * GROUP; i++, y += B, out += B) {
        ahead(y);
        aheadToWrite(out);
        S::store(out, finish<after>(S::fma(S::load(y), scale, shift)));
      }
    }
  }

  static void normalise(const void* y, const Channels& channels, After after, void* out,
      size_t blocks, size_t pixels) {
    auto loop = after == After::RELU   ? normaliseAs<After::RELU>
                : after == After::GELU ? normaliseAs<After::GELU>
                                       : normaliseAs<After::NOTHING>;
    loop(static_cast<const E*>(y), channels, static_cast<E*>(out), blocks, pixels);
  }

  static void statistics(
      const void* image, float* partial, size_t blocks, size_t pixels, size_t images) {
    withPixels(pixels, images, [&](auto pixelsOf) {
      auto* y = static_cast<const E*>(image);
      for (size_t c = 0; c < blocks; c++, y += pixels * GROUP * B) {
        blockStatistics(y, pixelsOf, partial + 2 * c * B);
      }
    });
  }

  template <typename P>
  static void blockStatistics(const E* y, P pixels, float* partial) {
    // One pass sums the distances from the first pixel. It is near enough to the mean that no
    // digits are lost. Each sum has two accumulators, because one chain of additions is slower than
    // the loads.
    V shift = S::load(y);
    V sum0 = S::zero(), sum1 = S::zero(), square0 = S::zero(), square1 = S::zero();
    size_t i = 0;
    for (; i + 2 <= pixels.count; i += 2) {
      ahead(y + pixels.at(i));
      ahead(y + pixels.at(i + 1));
      V a = S::sub(S::load(y + pixels.at(i)), shift);
      V b = S::sub(S::load(y + pixels.at(i + 1)), shift);
      sum0 = S::add(sum0, a);
      sum1 = S::add(sum1, b);
      square0 = S::fma(a, a, square0);
      square1 = S::fma(b, b, square1);
    }
    if (i < pixels.count) {
      V a = S::sub(S::load(y + pixels.at(i)), shift);
      sum0 = S::add(sum0, a);
      square0 = S::fma(a, a, square0);
    }
    V sum = S::add(sum0, sum1);
    V mean = S::mul(sum, S::set(1.0f / float(pixels.count)));
    S::store(partial, S::add(shift, mean));
    S::store(partial + B, positive(S::sub(S::add(square0, square1), S::mul(mean, sum))));
  }

  // Returns the gradient of z = scale·y + shift from the gradient of the function after it.
  template <After after>
  static V passed(V y, V gradient, V scale, V shift) {
    if (after == After::NOTHING) return gradient;
    V z = S::fma(y, scale, shift);
    if (after == After::GELU) return S::mul(gradient, Math::geluSlope(z));
    return S::select(S::greater(z, S::zero()), gradient, S::zero());
  }

  template <After after>
  static void reduceGradientAs(const E* y, const E* gradient, const Channels& channels,
      float* partial, size_t blocks, size_t pixels) {
    pixels *= GROUP;
    for (size_t c = 0; c < blocks; c++, y += pixels * B, gradient += pixels * B, partial += 2 * B) {
      V scale = S::load(channels.scale + c * B), shift = S::load(channels.shift + c * B);
      V mean = S::load(channels.mean + c * B);
      V sum0 = S::zero(), sum1 = S::zero(), product0 = S::zero(), product1 = S::zero();
      size_t i = 0;
      for (; i + 2 <= pixels; i += 2) {
        ahead(y + i * B);
        ahead(y + i * B + B);
        ahead(gradient + i * B);
        ahead(gradient + i * B + B);
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

  static void reduceGradient(const void* y, const void* gradient, const Channels& channels,
      After after, float* partial, size_t blocks, size_t pixels) {
    auto loop = after == After::RELU   ? reduceGradientAs<After::RELU>
                : after == After::GELU ? reduceGradientAs<After::GELU>
                                       : reduceGradientAs<After::NOTHING>;
    loop(static_cast<const E*>(y), static_cast<const E*>(gradient), channels, partial, blocks,
        pixels);
  }

  template <After after, Write write>
  static void normaliseBackwardAs(const E* y, const E* gradient, const Channels& channels, E* dy,
      size_t blocks, size_t pixels, size_t images) {
    for (size_t c = 0; c < blocks; c++) {
      V scale = S::load(channels.scale + c * B), shift = S::load(channels.shift + c * B);
      V mean = S::load(channels.mean + c * B), slope = S::load(channels.slope + c * B);
      V meanGradient = S::load(channels.meanGradient + c * B);
      for (size_t i = 0; i < pixels * GROUP; i++, y += B, gradient += B, dy += B) {
        if (GROUP > 1 && i % GROUP >= images) {
          if (write == Write::SET) S::store(dy, S::zero());
          continue;
        }
        ahead(y);
        ahead(gradient);
        aheadToWrite(dy);
        V value = S::load(y);
        V g = passed<after>(value, S::load(gradient), scale, shift);
        V r = S::negatedFma(S::sub(value, mean), slope, S::sub(g, meanGradient));
        S::store(dy, write == Write::ADD ? S::fma(r, scale, S::load(dy)) : S::mul(r, scale));
      }
    }
  }

  template <Write write>
  static void normaliseBackwardInto(const E* y, const E* gradient, const Channels& channels,
      After after, E* dy, size_t blocks, size_t pixels, size_t images) {
    auto loop = after == After::RELU   ? normaliseBackwardAs<After::RELU, write>
                : after == After::GELU ? normaliseBackwardAs<After::GELU, write>
                                       : normaliseBackwardAs<After::NOTHING, write>;
    loop(y, gradient, channels, dy, blocks, pixels, images);
  }

  static void normaliseBackward(const void* y, const void* gradient, const Channels& channels,
      After after, void* dy, Write write, size_t blocks, size_t pixels, size_t images) {
    auto loop =
        write == Write::SET ? normaliseBackwardInto<Write::SET> : normaliseBackwardInto<Write::ADD>;
    loop(static_cast<const E*>(y), static_cast<const E*>(gradient), channels, after,
        static_cast<E*>(dy), blocks, pixels, images);
  }

  static void relu(void* values, size_t count) {
    auto* x = static_cast<E*>(values);
    for (size_t i = 0; i < count; i += B) {
      ahead(x + i);
      S::store(x + i, positive(S::load(x + i)));
    }
  }

  static void reluBackward(const void* outputs, void* gradients, size_t count) {
    auto* y = static_cast<const E*>(outputs);
    auto* gradient = static_cast<E*>(gradients);
    for (size_t i = 0; i < count; i += B) {
      ahead(y + i);
      ahead(gradient + i);
      M open = S::greater(S::load(y + i), S::zero());
      S::store(gradient + i, S::select(open, S::load(gradient + i), S::zero()));
    }
  }

  // After Cephes' tanhf: an odd polynomial near 0, where 1 - 2 / (e^2x + 1) would cancel.
  static void tanh(void* values, size_t count) {
    auto* x = static_cast<E*>(values);
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
      V e = Math::exponential(S::mul(S::set(2.0f), S::min(size, S::set(10.0f))));
      V far = S::sub(S::set(1.0f), S::div(S::set(2.0f), S::add(e, S::set(1.0f))));
      far = S::select(S::greater(S::zero(), v), S::sub(S::zero(), far), far);
      // NaN takes the path of small values, where it stays NaN.
      S::store(x + i, S::select(S::greater(size, S::set(0.625f)), far, near));
    }
  }

  static void tanhBackward(const void* outputs, void* gradients, size_t count) {
    auto* y = static_cast<const E*>(outputs);
    auto* gradient = static_cast<E*>(gradients);
    for (size_t i = 0; i < count; i += B) {
      V v = S::load(y + i);
      V slope = S::negatedFma(v, v, S::set(1.0f));
      S::store(gradient + i, S::mul(S::load(gradient + i), slope));
    }
  }

  // Beyond ±88 the nearest float is 1, or below 1e-38. NaN stays NaN, because min and max return
  // their second argument then.
  static void sigmoid(void* values, size_t count) {
    auto* x = static_cast<E*>(values);
    for (size_t i = 0; i < count; i += B) {
      V v = S::min(S::set(88.0f), S::max(S::set(-88.0f), S::load(x + i)));
      V e = Math::exponential(S::sub(S::zero(), v));
      S::store(x + i, S::div(S::set(1.0f), S::add(S::set(1.0f), e)));
    }
  }

  static void sigmoidBackward(const void* outputs, void* gradients, size_t count) {
    auto* y = static_cast<const E*>(outputs);
    auto* gradient = static_cast<E*>(gradients);
    for (size_t i = 0; i < count; i += B) {
      V v = S::load(y + i);
      S::store(gradient + i, S::mul(S::load(gradient + i), S::negatedFma(v, v, v)));
    }
  }

  // e^x - 1 = 2^n · rest + (2^n - 1), where nothing cancels: near 0 n is 0. Below -88 the nearest
  // float is -1. NaN takes the lower branch, which keeps it.
  static void elu(void* values, size_t count) {
    auto* x = static_cast<E*>(values);
    for (size_t i = 0; i < count; i += B) {
      V v = S::load(x + i);
      auto e = Math::power(S::min(S::zero(), S::max(S::set(-88.0f), v)));
      V below = S::fma(e.scale, e.rest, S::sub(e.scale, S::set(1.0f)));
      S::store(x + i, S::select(S::greater(v, S::zero()), v, below));
    }
  }

  static void eluBackward(const void* outputs, void* gradients, size_t count) {
    auto* y = static_cast<const E*>(outputs);
    auto* gradient = static_cast<E*>(gradients);
    for (size_t i = 0; i < count; i += B) {
      V v = S::load(y + i), g = S::load(gradient + i);
      S::store(gradient + i, S::select(S::greater(v, S::zero()), g, S::fma(g, v, g)));
    }
  }

  static void gelu(const void* source, void* target, size_t count) {
    auto* from = static_cast<const E*>(source);
    auto* to = static_cast<E*>(target);
    for (size_t i = 0; i < count; i += B) {
      ahead(from + i);
      S::store(to + i, finish<After::GELU>(S::load(from + i)));
    }
  }

  template <Write write>
  static void geluBackwardAs(const E* x, const E* gradient, E* dx, size_t count) {
    for (size_t i = 0; i < count; i += B) {
      ahead(x + i);
      ahead(gradient + i);
      V slope = Math::geluSlope(S::load(x + i)), g = S::load(gradient + i);
      V old = write == Write::ADD ? S::load(dx + i) : S::zero();
      S::store(dx + i, S::fma(slope, g, old));
    }
  }

  static void geluBackward(
      const void* x, const void* gradient, void* dx, Write write, size_t count) {
    auto loop = write == Write::SET ? geluBackwardAs<Write::SET> : geluBackwardAs<Write::ADD>;
    loop(static_cast<const E*>(x), static_cast<const E*>(gradient), static_cast<E*>(dx), count);
  }

  template <Write write>
  static void dropAs(const E* from, const DropoutMask& mask, E* to, size_t blocks, size_t pixels) {
    auto index = Math::wordsBy(pixels);  // of a block's first pixel
    for (size_t c = 0; c < blocks; c++, index += uint32_t(B * pixels)) {
      for (size_t i = 0; i < pixels; i++, from += B, to += B) {
        V value = Math::kept(S::load(from), index + uint32_t(i), mask);
        S::store(to, write == Write::ADD ? S::add(S::load(to), value) : value);
      }
    }
  }

  static void drop(const void* from, const DropoutMask& mask, void* to, Write write, size_t blocks,
      size_t pixels) {
    auto loop = write == Write::SET ? dropAs<Write::SET> : dropAs<Write::ADD>;
    loop(static_cast<const E*>(from), mask, static_cast<E*>(to), blocks, pixels);
  }

  static void scale(const void* source, float factor, void* target, Write write, size_t count) {
    auto* from = static_cast<const E*>(source);
    auto* to = static_cast<E*>(target);
    V by = S::set(factor);
    for (size_t i = 0; i < count; i += B) {
      V old = write == Write::ADD ? S::load(to + i) : S::zero();
      S::store(to + i, S::fma(by, S::load(from + i), old));
    }
  }

  // to = from, or to += from. The additions are in float32.
  template <Write write, typename From, typename To>
  static void convert(const From* from, To* to, size_t count) {
    size_t i = 0;
    auto result = [](const From* from, const To* to) {
      return write == Write::ADD ? S::add(S::load(to), S::load(from)) : S::load(from);
    };
    for (; i + B <= count; i += B) S::store(to + i, result(from + i, to + i));
    if (i == count) return;
    From rest[B] = {};
    To old[B] = {};
    memcpy(rest, from + i, (count - i) * sizeof(From));
    memcpy(old, to + i, (count - i) * sizeof(To));
    S::store(old, result(rest, old));
    memcpy(to + i, old, (count - i) * sizeof(To));
  }

  static void copy(const void* from, void* to, Write write, size_t count) {
    if (write == Write::SET) {
      memcpy(to, from, count * sizeof(E));
    } else {
      convert<Write::ADD>(static_cast<const E*>(from), static_cast<E*>(to), count);
    }
  }

  static void addRelu(const void* source, void* target, size_t count) {
    auto* from = static_cast<const E*>(source);
    auto* to = static_cast<E*>(target);
    for (size_t i = 0; i < count; i += B) {
      ahead(from + i);
      ahead(to + i);
      S::store(to + i, positive(S::add(S::load(to + i), S::load(from + i))));
    }
  }

  static void widen(const void* from, float* to, size_t count) {
    convert<Write::SET>(static_cast<const E*>(from), to, count);
  }

  static void round(const float* from, void* to, Write write, size_t count) {
    if (write == Write::SET) {
      convert<Write::SET>(from, static_cast<E*>(to), count);
    } else {
      convert<Write::ADD>(from, static_cast<E*>(to), count);
    }
  }

  static constexpr ValueKernels TABLE = {
      .normalise = normalise,
      .statistics = statistics,
      .reduceGradient = reduceGradient,
      .normaliseBackward = normaliseBackward,
      .relu = {.forward = relu, .backward = reluBackward},
      .tanh = {.forward = tanh, .backward = tanhBackward},
      .sigmoid = {.forward = sigmoid, .backward = sigmoidBackward},
      .elu = {.forward = elu, .backward = eluBackward},
      .gelu = gelu,
      .geluBackward = geluBackward,
      .drop = drop,
      .maxPool = Windows::maxPool,
      .maxPoolBackward = Windows::maxPoolBackward,
      .averagePool = Windows::averagePool,
      .averagePoolBackward = Windows::averagePoolBackward,
      .gatherWindows = Windows::gatherWindows,
      .scatterWindows = Windows::scatterWindows,
      .scale = scale,
      .copy = copy,
      .addRelu = addRelu,
      .widen = widen,
      .round = round,
  };
};

// `bfloat16s` is the table of the file that is compiled for them, or null.
template <typename S>
constexpr Kernels kernelsOf(const ValueKernels* bfloat16s) {
  return {.block = S::WIDTH,
      .group = 1,
      .floats = Loops<S, float>::TABLE,
      .bfloat16s = bfloat16s,
      .combineStatistics = FloatLoops<S>::combineStatistics,
      .sumPartials = FloatLoops<S>::sumPartials,
      .dropRow = FloatLoops<S>::dropRow,
      .planesForward = PlaneLoops<S>::forward,
      .planesAccumulate = PlaneLoops<S>::accumulate,
      .amx = nullptr};
}

}  // namespace nn::cpu
