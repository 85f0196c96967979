// Compares the loops of AMX: products and gradients of weights with sums in double, and the
// processor's tiles with the emulated ones.
#include "nn/cpu/amx.h"

#include <doctest/doctest.h>
#include <string.h>

#include <cmath>
#include <dnnl.hpp>
#include <random>
#include <utility>
#include <vector>

#include "nn/cpu/instruction_set.h"
#include "tests/skip.h"

namespace nn {
namespace {

namespace cpu = nn::cpu;

// The processor's loops and the emulated ones, for groups of 16 and of 32 images.
struct Sizes {
  const cpu::AmxLoops &native, &emulated;
};
const Sizes SIZES[] = {{cpu::AMX_LOOPS_16, cpu::EMULATED_AMX_LOOPS_16},
    {cpu::AMX_LOOPS_32, cpu::EMULATED_AMX_LOOPS_32}};

bool canEmulate() {
  auto level = unsigned(dnnl::cpu_isa::avx512_core_bf16);
  return (unsigned(dnnl::get_effective_cpu_isa()) & level) == level;
}

float valueOf(Bfloat16 x) {
  uint32_t bits = uint32_t(x.bits) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
Bfloat16 rounded(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

template <typename T>
struct Aligned {
  explicit Aligned(size_t count): memory(count + 64 / sizeof(T)) {
    memset(static_cast<void*>(memory.data()), 0, memory.size() * sizeof(T));
  }
  T* begin() { return reinterpret_cast<T*>((uintptr_t(memory.data()) + 63) & ~uintptr_t(63)); }
  std::vector<T> memory;
};

struct Case {
  const char* name;
  size_t channels, outputs, height, width, kernel, stride, pad;

  size_t outHeight() const { return (height + 2 * pad - kernel) / stride + 1; }
  size_t outWidth() const { return (width + 2 * pad - kernel) / stride + 1; }
  size_t taps() const { return kernel * kernel; }
};

constexpr Case CASES[] = {
    {"a block of channels, 3×3", 32, 32, 5, 4, 3, 1, 1},
    {"tiles that are not full", 20, 50, 6, 6, 5, 1, 0},
    {"several blocks, 1×1", 80, 112, 3, 3, 1, 1, 0},
    {"stride 2", 40, 16, 7, 7, 3, 2, 1},
    {"stride 2 that leaves a row over", 33, 48, 6, 8, 3, 2, 0},
    {"1×1 with stride 2", 32, 64, 5, 5, 1, 2, 0},
    {"2×2", 12, 24, 4, 4, 2, 1, 0},
    {"padding wider than the window", 16, 16, 3, 4, 2, 1, 3},
    {"a stride wider than the window", 16, 48, 8, 8, 2, 3, 1},
    {"7×7, wide padding", 17, 33, 6, 5, 7, 1, 3},
    {"the whole image, as a dense layer", 50, 10, 4, 4, 4, 1, 0},
    {"one pixel", 784, 128, 1, 1, 1, 1, 0},
    {"rows that do not fit a cache", 256, 64, 9, 31, 3, 1, 1},
};

// A group of images: their values by image, channel, row and column.
struct Group {
  size_t images, channels, height, width, blocks;
  Aligned<Bfloat16> values;

  Group(size_t images, size_t channels, size_t height, size_t width)
      : images(images),
        channels(channels),
        height(height),
        width(width),
        blocks((channels + 31) / 32),
        values(blocks * height * width * images * 32) {}

  size_t place(size_t n, size_t c, size_t y, size_t x) const {
    return ((((c / 32) * height + y) * width + x) * images + n) * 32 + c % 32;
  }
  float at(size_t n, size_t c, size_t y, size_t x) {
    return valueOf(values.begin()[place(n, c, y, x)]);
  }
  void draw(std::mt19937& random) {
    for (size_t n = 0; n < images; ++n)
      for (size_t c = 0; c < channels; ++c)
        for (size_t y = 0; y < height; ++y)
          for (size_t x = 0; x < width; ++x)
            values.begin()[place(n, c, y, x)] = rounded(float(random() % 2001) / 1000 - 1);
  }
};

struct Pairs {
  std::vector<cpu::AmxPair> list;
  std::vector<cpu::AmxSource> sources;
};

// With groups of 16 images, two neighbours in a row make a pair if they read the same places of the
// window. Otherwise a pixel is alone.
Pairs forwardPairs(const Case& s, size_t images) {
  uint32_t tiles = images / 16;
  Pairs pairs;
  std::vector<uint32_t> taps;  // of the pixel before
  for (size_t y = 0; y < s.outHeight(); ++y) {
    for (size_t x = 0; x < s.outWidth(); ++x) {
      std::vector<uint32_t> ofPixel, from;
      for (size_t u = 0; u < s.kernel; ++u) {
        for (size_t v = 0; v < s.kernel; ++v) {
          size_t row = y * s.stride + u - s.pad, column = x * s.stride + v - s.pad;
          if (row >= s.height || column >= s.width) continue;
          from.push_back(uint32_t(row * s.width + column) * tiles);
          ofPixel.push_back(uint32_t(u * s.kernel + v));
        }
      }
      uint32_t tile = uint32_t(y * s.outWidth() + x) * tiles;
      bool joins = tiles == 1 && x % 2 == 1 && ofPixel == taps;
      if (joins) {
        pairs.list.back().second = tile;
        size_t first = pairs.list.back().sources;
        for (size_t i = 0; i < from.size(); ++i) pairs.sources[first + i].second = from[i];
      } else {
        pairs.list.push_back({tile, tile + tiles - 1, uint32_t(pairs.sources.size())});
        for (size_t i = 0; i < from.size(); ++i) {
          pairs.sources.push_back({from[i], from[i] + tiles - 1, ofPixel[i]});
        }
      }
      taps = ofPixel;
    }
  }
  pairs.list.push_back({0, 0, uint32_t(pairs.sources.size())});
  return pairs;
}

// A case with its arrays.
struct Trial {
  Case shape;
  std::mt19937 random{1};
  Group x, dy;
  std::vector<float> weights, bias;

  Trial(const Case& shape, size_t images)
      : shape(shape),
        x(images, shape.channels, shape.height, shape.width),
        dy(images, shape.outputs, shape.outHeight(), shape.outWidth()),
        weights(shape.outputs * shape.channels * shape.taps()),
        bias((shape.outputs + 15) / 16 * 16) {
    x.draw(random);
    dy.draw(random);
    for (auto& w: weights) w = float(random() % 2001) / 1000 - 1;
    for (size_t k = 0; k < shape.outputs; ++k) bias[k] = float(random() % 2001) / 1000 - 1;
  }

  std::vector<float> multiply(const cpu::AmxLoops& loops) {
    size_t tiles = (shape.outputs + 15) / 16, pixels = dy.height * dy.width;
    Aligned<Bfloat16> packed(tiles * shape.taps() * x.blocks * cpu::AMX_TILE);
    loops.packWeights(weights.data(), shape.outputs, shape.channels * shape.taps(), shape.channels,
        shape.taps(), shape.taps(), packed.begin());
    auto pairs = forwardPairs(shape, x.images);
    Aligned<float> out(dy.blocks * pixels * x.images * 32);
    cpu::AmxProduct product = {.pairs = pairs.list.data(),
        .sources = pairs.sources.data(),
        .taps = shape.taps(),
        .inBlocks = x.blocks,
        .inStride = x.height * x.width * x.images / 16,
        .outTiles = tiles,
        .outStride = pixels * x.images / 16,
        .in = x.values.begin(),
        .weights = packed.begin(),
        .bias = bias.data(),
        .out = out.begin(),
        .outIsFloats = true,
        .write = cpu::Write::SET};
    size_t count = pairs.list.size() - 1;
    loops.multiply(product, 0, count / 2);
    loops.multiply(product, count / 2, count);
    product.write = cpu::Write::ADD;
    // Adds the last pair, which contains the last pixel.
    loops.multiply(product, count - 1, count);
    return {out.begin(), out.begin() + dy.blocks * pixels * x.images * 32};
  }

  // The first pixel of the last pair.
  size_t lastPair() const {
    auto pairs = forwardPairs(shape, x.images);
    return pairs.list[pairs.list.size() - 2].first / (x.images / 16);
  }

  cpu::AmxWindow window() const {
    return {.inHeight = shape.height,
        .inWidth = shape.width,
        .outHeight = shape.outHeight(),
        .outWidth = shape.outWidth(),
        .kernelHeight = shape.kernel,
        .kernelWidth = shape.kernel,
        .stride = shape.stride,
        .pad = shape.pad,
        .inTiles = (shape.channels + 15) / 16,
        .outTiles = (shape.outputs + 15) / 16,
        .outPixels = shape.outHeight() * shape.outWidth()};
  }

  std::vector<float> accumulate(const cpu::AmxLoops& loops) {
    auto w = window();
    Aligned<float> sums(w.inTiles * w.outTiles * shape.taps() * cpu::AMX_SUMS);
    Aligned<Bfloat16> scratch(loops.scratchValues(w));
    auto accumulate = [&](size_t begin, size_t end) {
      loops.accumulate(
          w, x.values.begin(), dy.values.begin(), begin, end, sums.begin(), scratch.begin());
    };
    accumulate(0, w.outHeight);
    accumulate(0, w.outHeight / 2);
    accumulate(w.outHeight / 2, w.outHeight);
    return {sums.begin(), sums.begin() + w.inTiles * w.outTiles * shape.taps() * cpu::AMX_SUMS};
  }
};

std::vector<std::pair<Case, const cpu::AmxLoops*>> trials() {
  std::vector<std::pair<Case, const cpu::AmxLoops*>> all;
  for (auto& shape: CASES) {
    for (auto& size: SIZES) all.push_back({shape, &size.emulated});
  }
  return all;
}

TEST_CASE("amx: products of tiles agree with a convolution in double") {
  if (!canEmulate()) SKIP_CASE("needs AVX512_BF16");
  for (auto [shape, loops]: trials()) {
    CAPTURE(shape.name);
    Trial trial(shape, loops->images);
    auto out = trial.multiply(*loops);
    double worst = 0;
    bool paddingIsZero = true;
    size_t pixels = trial.dy.height * trial.dy.width;
    auto last = trial.lastPair();
    for (size_t n = 0; n < loops->images; n += 7) {
      for (size_t k = 0; k < trial.dy.blocks * 32; ++k) {
        for (size_t i = 0; i < pixels; ++i) {
          double value = out[(((k / 32) * pixels + i) * loops->images + n) * 32 + k % 32];
          if (k >= shape.outputs) {
            paddingIsZero &= value == 0;
            continue;
          }
          double sum = trial.bias[k];
          for (size_t c = 0; c < shape.channels; ++c) {
            for (size_t t = 0; t < shape.taps(); ++t) {
              size_t row = i / trial.dy.width * shape.stride + t / shape.kernel - shape.pad;
              size_t column = i % trial.dy.width * shape.stride + t % shape.kernel - shape.pad;
              if (row >= shape.height || column >= shape.width) continue;
              float w =
                  valueOf(rounded(trial.weights[(k * shape.channels + c) * shape.taps() + t]));
              sum += double(trial.x.at(n, c, row, column)) * w;
            }
          }
          // The last pair was added to itself.
          if (i >= last) sum *= 2;
          worst = std::max(worst, std::abs(value - sum));
        }
      }
    }
    CHECK(paddingIsZero);
    CHECK(worst < 2e-5 * std::sqrt(double(shape.channels * shape.taps())));
  }
}

TEST_CASE("amx: gradients of weights are sums over images and pixels") {
  if (!canEmulate()) SKIP_CASE("needs AVX512_BF16");
  for (auto [shape, loops]: trials()) {
    CAPTURE(shape.name);
    Trial trial(shape, loops->images);
    auto w = trial.window();
    auto sums = trial.accumulate(*loops);
    double worst = 0;
    for (size_t k = 0; k < shape.outputs; k += 3) {
      for (size_t c = 0; c < shape.channels; c += 3) {
        for (size_t t = 0; t < shape.taps(); ++t) {
          double sum = 0;
          for (size_t i = 0; i < w.outHeight * w.outWidth; ++i) {
            size_t row = i / w.outWidth * shape.stride + t / shape.kernel - shape.pad;
            size_t column = i % w.outWidth * shape.stride + t % shape.kernel - shape.pad;
            if (row >= shape.height || column >= shape.width) continue;
            for (size_t n = 0; n < loops->images; ++n) {
              sum += double(trial.x.at(n, c, row, column)) *
                     trial.dy.at(n, k, i / w.outWidth, i % w.outWidth);
            }
          }
          size_t tile =
              ((t / shape.kernel * w.inTiles + c / 16) * w.outTiles + k / 16) * shape.kernel +
              t % shape.kernel;
          double value = sums[tile * cpu::AMX_SUMS + c % 16 * 16 + k % 16];
          worst = std::max(worst, std::abs(value - 2 * sum));
        }
      }
    }
    CHECK(worst < 1e-4 * std::sqrt(double(loops->images * w.outHeight * w.outWidth)));
  }
}

TEST_CASE("amx: the processor's tiles give the bits of the emulated ones") {
  if (!hasAmx()) SKIP_CASE("no AMX here");
  for (auto& shape: CASES) {
    CAPTURE(shape.name);
    for (auto& size: SIZES) {
      Trial trial(shape, size.native.images);
      CHECK(trial.multiply(size.native) == trial.multiply(size.emulated));
      CHECK(trial.accumulate(size.native) == trial.accumulate(size.emulated));
    }
  }
}

// The values of 32 images and 32 channels.
constexpr size_t PIXEL = 32 * 32;

// Returns the product of one pixel and the weights.
std::vector<float> multiplyOne(const cpu::AmxLoops& loops, Bfloat16* x, Bfloat16* weights) {
  Aligned<float> out(PIXEL);
  cpu::AmxPair pairs[] = {{0, 1, 0}, {0, 0, 1}};
  cpu::AmxSource source = {0, 1, 0};
  loops.multiply({.pairs = pairs,
                     .sources = &source,
                     .taps = 1,
                     .inBlocks = 1,
                     .inStride = 2,
                     .outTiles = 2,
                     .outStride = 2,
                     .in = x,
                     .weights = weights,
                     .bias = nullptr,
                     .out = out.begin(),
                     .outIsFloats = true,
                     .write = cpu::Write::SET},
      0, 1);
  return {out.begin(), out.begin() + PIXEL};
}

TEST_CASE("amx: the processor's tiles round and flush any bits as the emulated ones do") {
  if (!hasAmx()) SKIP_CASE("no AMX here");
  std::mt19937 random(1);
  for (uint i = 0; i < 1000; ++i) {
    Aligned<Bfloat16> x(PIXEL), weights(2 * cpu::AMX_TILE);
    // Finite numbers of any size, denormal ones too.
    auto draw = [&](Bfloat16& value) { value.bits = uint16_t(random() & 0xbfff); };
    for (size_t j = 0; j < PIXEL; ++j) draw(x.begin()[j]);
    for (size_t j = 0; j < 2 * cpu::AMX_TILE; ++j) draw(weights.begin()[j]);
    auto found = multiplyOne(cpu::AMX_LOOPS_32, x.begin(), weights.begin());
    auto expected = multiplyOne(cpu::EMULATED_AMX_LOOPS_32, x.begin(), weights.begin());
    REQUIRE(memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("amx: emulated tiles read denormal numbers as 0, and produce none") {
  if (!canEmulate()) SKIP_CASE("needs AVX512_BF16");
  constexpr Bfloat16 ONE = {0x3f80}, DENORMAL = {0x0040}, LEAST = {0x0080}, HALF = {0x3f00};
  auto first = [](Bfloat16 a, Bfloat16 b) {
    Aligned<Bfloat16> x(PIXEL), weights(2 * cpu::AMX_TILE);
    x.begin()[0] = a;
    weights.begin()[0] = b;
    return multiplyOne(cpu::EMULATED_AMX_LOOPS_32, x.begin(), weights.begin())[0];
  };
  CHECK(first(ONE, ONE) == 1);
  CHECK(first(ONE, LEAST) == valueOf(LEAST));
  CHECK(first(ONE, DENORMAL) == 0);
  CHECK(first(HALF, LEAST) == 0);
}

}  // namespace
}  // namespace nn
