// nn/cpu/kernels_groups.h: the loops of nn/cpu/kernels.h over groups of images, as nn/cpu/amx.h
// describes them.
#pragma once

#include "nn/cpu/amx.h"
#include "nn/cpu/kernels_body.h"
#include "nn/cpu/vector_pair.h"

namespace nn::cpu {
namespace {

// `S` is a vector type's operations, see vector_avx512.h; it loads and stores `E`. Groups have
// IMAGES images.
template <typename S, typename E, size_t IMAGES>
struct GroupLoops {
  using V = typename S::Vector;
  using Math = VectorMath<S>;
  // A pixel of an image has two vectors of channels.
  static_assert(AMX_CHANNELS == 2 * S::WIDTH);
  static constexpr size_t PIXEL = IMAGES * AMX_CHANNELS;
  using Channels = Loops<Pair<S>, E, IMAGES>;
  using Windows = WindowLoops<S, E, PIXEL>;
  using Values = Loops<S, E>;

  template <Write write>
  static void dropAs(const E* from, const DropoutMask& mask, E* to, size_t blocks, size_t pixels) {
    for (size_t c = 0; c < blocks * AMX_CHANNELS; c += S::WIDTH) {
      auto index = Math::wordsBy(pixels) + uint32_t(c * pixels);  // of the first pixel
      size_t at = c / AMX_CHANNELS * pixels * PIXEL + c % AMX_CHANNELS;
      for (size_t i = 0; i < pixels; i++, at += PIXEL) {
        V value = Math::kept(S::load(from + at), index + uint32_t(i), mask);
        S::store(to + at, write == Write::ADD ? S::add(S::load(to + at), value) : value);
      }
    }
  }

  static void drop(const void* from, const DropoutMask& mask, void* to, Write write, size_t blocks,
      size_t pixels) {
    auto loop = write == Write::SET ? dropAs<Write::SET> : dropAs<Write::ADD>;
    loop(static_cast<const E*>(from), mask, static_cast<E*>(to), blocks, pixels);
  }

  static constexpr ValueKernels TABLE = {
      .normalise = Channels::normalise,
      .statistics = Channels::statistics,
      .reduceGradient = Channels::reduceGradient,
      .normaliseBackward = Channels::normaliseBackward,
      .relu = {.forward = Values::relu, .backward = Values::reluBackward},
      .tanh = {.forward = Values::tanh, .backward = Values::tanhBackward},
      .sigmoid = {.forward = Values::sigmoid, .backward = Values::sigmoidBackward},
      .elu = {.forward = Values::elu, .backward = Values::eluBackward},
      .gelu = Values::gelu,
      .geluBackward = Values::geluBackward,
      .drop = drop,
      .maxPool = Windows::maxPool,
      .maxPoolBackward = Windows::maxPoolBackward,
      .averagePool = Windows::averagePool,
      .averagePoolBackward = Windows::averagePoolBackward,
      .gatherWindows = nullptr,
      .scatterWindows = nullptr,
      .scale = Values::scale,
      .copy = Values::copy,
      .addRelu = Values::addRelu,
      .widen = Values::widen,
      .round = Values::round,
  };
};

// `bfloat16s` is the table of the same loops over bfloat16s.
template <typename S, size_t IMAGES>
constexpr Kernels groupKernelsOf(const ValueKernels* bfloat16s, const AmxLoops* amx) {
  return {.block = AMX_CHANNELS,
      .group = IMAGES,
      .floats = GroupLoops<S, float, IMAGES>::TABLE,
      .bfloat16s = bfloat16s,
      .combineStatistics = FloatLoops<Pair<S>>::combineStatistics,
      .sumPartials = FloatLoops<Pair<S>>::sumPartials,
      .dropRow = FloatLoops<S>::dropRow,
      .amx = amx};
}

}  // namespace
}  // namespace nn::cpu
