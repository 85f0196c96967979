// The loops of AMX: products and gradients of weights beside sums in double, and the processor's
// tiles beside the emulated ones.
#include "nn/cpu/amx.h"

#include <doctest/doctest.h>
#include <string.h>

#include <cmath>
#include <dnnl.hpp>
#include <random>
#include <vector>

#include "nn/cpu/instruction_set.h"
#include "tests/skip.h"

namespace nn {
namespace {

namespace cpu = nn::cpu;

constexpr size_t G = cpu::AMX_IMAGES;

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
    {"7×7, wide padding", 17, 33, 6, 5, 7, 1, 3},
    {"the whole image, as a dense layer", 50, 10, 4, 4, 4, 1, 0},
    {"one pixel", 784, 128, 1, 1, 1, 1, 0},
    {"rows that do not fit a cache", 256, 64, 9, 31, 3, 1, 1},
};

// Images in groups: their values by image, channel, row and column.
struct Group {
  size_t channels, height, width, blocks;
  Aligned<Bfloat16> values;

  Group(size_t channels, size_t height, size_t width)
      : channels(channels),
        height(height),
        width(width),
        blocks((channels + 31) / 32),
        values(blocks * height * width * cpu::AMX_PIXEL) {}

  size_t place(size_t n, size_t c, size_t y, size_t x) const {
    return (((c / 32) * height + y) * width + x) * cpu::AMX_PIXEL + n * 32 + c % 32;
  }
  float at(size_t n, size_t c, size_t y, size_t x) {
    return valueOf(values.begin()[place(n, c, y, x)]);
  }
  void draw(std::mt19937& random) {
    for (size_t n = 0; n < G; ++n)
      for (size_t c = 0; c < channels; ++c)
        for (size_t y = 0; y < height; ++y)
          for (size_t x = 0; x < width; ++x)
            values.begin()[place(n, c, y, x)] = rounded(float(random() % 2001) / 1000 - 1);
  }
};

struct Sources {
  std::vector<uint32_t> starts;
  std::vector<cpu::AmxSource> list;
};

Sources forwardSources(const Case& s) {
  Sources sources;
  for (size_t y = 0; y < s.outHeight(); ++y) {
    for (size_t x = 0; x < s.outWidth(); ++x) {
      sources.starts.push_back(sources.list.size());
      for (size_t u = 0; u < s.kernel; ++u) {
        for (size_t v = 0; v < s.kernel; ++v) {
          size_t row = y * s.stride + u - s.pad, column = x * s.stride + v - s.pad;
          if (row >= s.height || column >= s.width) continue;
          sources.list.push_back({uint32_t(row * s.width + column), uint32_t(u * s.kernel + v)});
        }
      }
    }
  }
  sources.starts.push_back(sources.list.size());
  return sources;
}

// A case with its arrays.
struct Trial {
  Case shape;
  std::mt19937 random{1};
  Group x, dy;
  std::vector<float> weights, bias;

  explicit Trial(const Case& shape)
      : shape(shape),
        x(shape.channels, shape.height, shape.width),
        dy(shape.outputs, shape.outHeight(), shape.outWidth()),
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
    auto sources = forwardSources(shape);
    Aligned<float> out(dy.blocks * pixels * cpu::AMX_PIXEL);
    cpu::AmxProduct product = {.starts = sources.starts.data(),
        .sources = sources.list.data(),
        .taps = shape.taps(),
        .inBlocks = x.blocks,
        .inPixels = x.height * x.width,
        .outTiles = tiles,
        .outPixels = pixels,
        .in = x.values.begin(),
        .weights = packed.begin(),
        .bias = bias.data(),
        .out = out.begin(),
        .outIsFloats = true,
        .write = cpu::Write::SET};
    loops.multiply(product, 0, pixels / 2);
    loops.multiply(product, pixels / 2, pixels);
    product.write = cpu::Write::ADD;
    loops.multiply(product, pixels - 1, pixels);
    return {out.begin(), out.begin() + dy.blocks * pixels * cpu::AMX_PIXEL};
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
    Aligned<Bfloat16> scratch(cpu::amxScratch(w));
    loops.accumulate(w, x.values.begin(), dy.values.begin(), sums.begin(), scratch.begin());
    loops.accumulate(w, x.values.begin(), dy.values.begin(), sums.begin(), scratch.begin());
    return {sums.begin(), sums.begin() + w.inTiles * w.outTiles * shape.taps() * cpu::AMX_SUMS};
  }
};

TEST_CASE("amx: products of tiles are a convolution") {
  if (!canEmulate()) SKIP_CASE("needs AVX512_BF16");
  for (auto& shape: CASES) {
    CAPTURE(shape.name);
    Trial trial(shape);
    auto out = trial.multiply(cpu::EMULATED_AMX_LOOPS);
    double worst = 0;
    bool paddingIsZero = true;
    size_t pixels = trial.dy.height * trial.dy.width;
    for (size_t n = 0; n < G; n += 7) {
      for (size_t k = 0; k < trial.dy.blocks * 32; ++k) {
        for (size_t i = 0; i < pixels; ++i) {
          double value = out[((k / 32) * pixels + i) * cpu::AMX_PIXEL + n * 32 + k % 32];
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
          // The last pixel was added to itself.
          if (i == pixels - 1) sum *= 2;
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
  for (auto& shape: CASES) {
    CAPTURE(shape.name);
    Trial trial(shape);
    auto w = trial.window();
    auto sums = trial.accumulate(cpu::EMULATED_AMX_LOOPS);
    double worst = 0;
    for (size_t k = 0; k < shape.outputs; k += 3) {
      for (size_t c = 0; c < shape.channels; c += 3) {
        for (size_t t = 0; t < shape.taps(); ++t) {
          double sum = 0;
          for (size_t i = 0; i < w.outHeight * w.outWidth; ++i) {
            size_t row = i / w.outWidth * shape.stride + t / shape.kernel - shape.pad;
            size_t column = i % w.outWidth * shape.stride + t % shape.kernel - shape.pad;
            if (row >= shape.height || column >= shape.width) continue;
            for (size_t n = 0; n < G; ++n) {
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
    CHECK(worst < 1e-4 * std::sqrt(double(G * w.outHeight * w.outWidth)));
  }
}

TEST_CASE("amx: the processor's tiles give the bits of the emulated ones") {
  if (!hasAmx()) SKIP_CASE("no AMX here");
  for (auto& shape: CASES) {
    CAPTURE(shape.name);
    Trial trial(shape);
    CHECK(trial.multiply(cpu::AMX_LOOPS) == trial.multiply(cpu::EMULATED_AMX_LOOPS));
    CHECK(trial.accumulate(cpu::AMX_LOOPS) == trial.accumulate(cpu::EMULATED_AMX_LOOPS));
  }
}

// A product of one pixel of 32 images and 32 channels.
std::vector<float> multiplyOne(const cpu::AmxLoops& loops, Bfloat16* x, Bfloat16* weights) {
  Aligned<float> out(cpu::AMX_PIXEL);
  uint32_t starts[] = {0, 1};
  cpu::AmxSource source = {0, 0};
  loops.multiply({.starts = starts,
                     .sources = &source,
                     .taps = 1,
                     .inBlocks = 1,
                     .inPixels = 1,
                     .outTiles = 2,
                     .outPixels = 1,
                     .in = x,
                     .weights = weights,
                     .bias = nullptr,
                     .out = out.begin(),
                     .outIsFloats = true,
                     .write = cpu::Write::SET},
      0, 1);
  return {out.begin(), out.begin() + cpu::AMX_PIXEL};
}

TEST_CASE("amx: the processor's tiles round and flush any bits as the emulated ones do") {
  if (!hasAmx()) SKIP_CASE("no AMX here");
  std::mt19937 random(1);
  for (uint i = 0; i < 1000; ++i) {
    Aligned<Bfloat16> x(cpu::AMX_PIXEL), weights(2 * cpu::AMX_TILE);
    // Finite numbers of any size, denormal ones too.
    auto draw = [&](Bfloat16& value) { value.bits = uint16_t(random() & 0xbfff); };
    for (size_t j = 0; j < cpu::AMX_PIXEL; ++j) draw(x.begin()[j]);
    for (size_t j = 0; j < 2 * cpu::AMX_TILE; ++j) draw(weights.begin()[j]);
    auto found = multiplyOne(cpu::AMX_LOOPS, x.begin(), weights.begin());
    auto expected = multiplyOne(cpu::EMULATED_AMX_LOOPS, x.begin(), weights.begin());
    REQUIRE(memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("amx: emulated tiles take denormal numbers for 0, and make none") {
  if (!canEmulate()) SKIP_CASE("needs AVX512_BF16");
  constexpr Bfloat16 ONE = {0x3f80}, DENORMAL = {0x0040}, LEAST = {0x0080}, HALF = {0x3f00};
  auto first = [](Bfloat16 a, Bfloat16 b) {
    Aligned<Bfloat16> x(cpu::AMX_PIXEL), weights(2 * cpu::AMX_TILE);
    x.begin()[0] = a;
    weights.begin()[0] = b;
    return multiplyOne(cpu::EMULATED_AMX_LOOPS, x.begin(), weights.begin())[0];
  };
  CHECK(first(ONE, ONE) == 1);
  CHECK(first(ONE, LEAST) == valueOf(LEAST));
  CHECK(first(ONE, DENORMAL) == 0);
  CHECK(first(HALF, LEAST) == 0);
}

}  // namespace
}  // namespace nn
