#include "nn/cpu/kernels.h"

#include <doctest/doctest.h>
#include <string.h>

#include <cmath>
#include <dnnl.hpp>
#include <random>
#include <vector>

#include "nn/dropout.h"
#include "tests/skip.h"

namespace nn::cpu {
namespace {

bool has(dnnl::cpu_isa level) {
  auto bits = unsigned(dnnl::get_effective_cpu_isa());
  return (bits & unsigned(level)) == unsigned(level);
}

// The tables that can run here.
std::vector<const Kernels*> tables() {
  std::vector<const Kernels*> tables;
  if (has(dnnl::cpu_isa::avx2)) tables.push_back(&AVX2_KERNELS);
  if (has(dnnl::cpu_isa::avx512_core)) tables.push_back(&AVX512_KERNELS);
  return tables;
}

std::vector<float> draw(size_t count, float middle = 0) {
  static thread_local std::mt19937 random(1);
  std::vector<float> x(count);
  for (auto& value: x) value = middle + float(random() % 2001) / 1000 - 1;
  return x;
}

TEST_CASE("kernels: relu alone and after batch norm is exact, and keeps NaN") {
  for (auto* kernels: tables()) {
    std::vector<float> x(kernels->block, -1.0f), ones(kernels->block, 1.0f), out = x;
    std::vector<float> zeros(kernels->block, 0.0f);
    x[0] = 3;
    x[1] = INFINITY;
    x[2] = NAN;
    Channels channels = {.scale = ones.data(), .shift = zeros.data()};
    kernels->floats.normalise(x.data(), channels, After::RELU, out.data(), 1, 1);
    kernels->floats.relu.forward(x.data(), x.size());
    for (auto* y: {&x, &out}) {
      CHECK((*y)[0] == 3);
      CHECK((*y)[1] == INFINITY);
      CHECK(std::isnan((*y)[2]));
      CHECK((*y)[3] == 0);
    }
  }
}

TEST_CASE("kernels: tanh is right to the last digits, at all sizes, and keeps NaN") {
  for (auto* kernels: tables()) {
    for (float x = 1e-6f; x < 100; x *= 1.01f) {
      std::vector<float> values(kernels->block, x);
      values[1] = -x;
      values[2] = NAN;
      kernels->floats.tanh.forward(values.data(), values.size());
      CHECK(values[0] == doctest::Approx(std::tanh(double(x))).epsilon(3e-7));
      CHECK(values[1] == -values[0]);
      CHECK(std::isnan(values[2]));
    }
    std::vector<float> zeros(kernels->block, 0.0f);
    kernels->floats.tanh.forward(zeros.data(), zeros.size());
    CHECK(zeros[0] == 0);
  }
}

TEST_CASE("kernels: sigmoid and elu are right to the last digits, at all sizes, and keep NaN") {
  for (auto* kernels: tables()) {
    for (float x = 1e-6f; x < 80; x *= 1.01f) {
      std::vector<float> values(kernels->block, x);
      values[1] = -x;
      values[2] = NAN;
      auto sigmoid = values, elu = values;
      kernels->floats.sigmoid.forward(sigmoid.data(), sigmoid.size());
      CHECK(sigmoid[0] == doctest::Approx(1 / (1 + std::exp(-double(x)))).epsilon(3e-7));
      CHECK(std::abs(sigmoid[1] * (1 + std::exp(double(x))) - 1) <= 3e-7);
      CHECK(std::isnan(sigmoid[2]));
      kernels->floats.elu.forward(elu.data(), elu.size());
      CHECK(elu[0] == x);
      CHECK(std::abs(elu[1] / std::expm1(-double(x)) - 1) <= 3e-7);
      CHECK(std::isnan(elu[2]));
    }
    std::vector<float> far(kernels->block, 1000.0f);
    far[1] = -1000;
    far[2] = 0;
    auto sigmoid = far, elu = far;
    kernels->floats.sigmoid.forward(sigmoid.data(), sigmoid.size());
    CHECK(sigmoid[0] == 1);
    CHECK(sigmoid[1] < 1e-38f);
    CHECK(sigmoid[2] == 0.5f);
    kernels->floats.elu.forward(elu.data(), elu.size());
    CHECK(elu[0] == 1000);
    CHECK(elu[1] == -1);
    CHECK(elu[2] == 0);
  }
}

TEST_CASE("kernels: a sum with ReLU clips what is below 0, and keeps NaN") {
  for (auto* kernels: tables()) {
    auto from = draw(kernels->block), to = draw(kernels->block), before = to;
    from[1] = NAN;
    kernels->floats.addRelu(from.data(), to.data(), to.size());
    for (size_t i = 0; i < to.size(); ++i) {
      if (i != 1) CHECK(to[i] == std::max(0.0f, from[i] + before[i]));
    }
    CHECK(std::isnan(to[1]));
  }
}

TEST_CASE("kernels: gelu and its slope are right to 2e-7 of the argument, and keep NaN") {
  for (auto* kernels: tables()) {
    for (float x = -30; x < 30; x += 0.01f) {
      std::vector<float> from(kernels->block, x), to = from, slope = from;
      std::vector<float> ones(kernels->block, 1.0f);
      from[1] = NAN;
      kernels->floats.gelu(from.data(), to.data(), from.size());
      kernels->floats.geluBackward(from.data(), ones.data(), slope.data(), Write::SET, from.size());
      double below = std::erfc(-double(x) / std::sqrt(2.0)) / 2;
      double height = std::exp(-double(x) * x / 2) / std::sqrt(2 * std::acos(-1.0));
      CHECK(std::abs(to[0] - x * below) <= 2e-7 * std::max(1.0f, std::abs(x)));
      CHECK(std::abs(slope[0] - (below + x * height)) <= 5e-7);
      CHECK(std::isnan(to[1]));
      CHECK(std::isnan(slope[1]));
    }
  }
}

TEST_CASE(
    "kernels: statistics keep their digits where the mean is much larger than the deviation") {
  for (auto* kernels: tables()) {
    size_t B = kernels->block, pixels = 49, images = 16;
    auto y = draw(images * pixels * B, 1000);
    std::vector<float> partial(images * 2 * B), mean(B), variance(B);
    for (size_t n = 0; n < images; ++n) {
      kernels->floats.statistics(&y[n * pixels * B], &partial[n * 2 * B], 1, pixels, 1);
    }
    kernels->combineStatistics(
        partial.data(), images, 1, 2 * B, pixels, mean.data(), variance.data());
    for (size_t c = 0; c < B; ++c) {
      double sum = 0, square = 0, values = double(images * pixels);
      for (size_t i = c; i < y.size(); i += B) sum += y[i];
      for (size_t i = c; i < y.size(); i += B) square += std::pow(y[i] - sum / values, 2);
      CHECK(mean[c] == doctest::Approx(sum / values).epsilon(3e-7));
      CHECK(variance[c] == doctest::Approx(square / values).epsilon(1e-4));
    }
  }
}

TEST_CASE("kernels: the first of equal maxima in row order gets the gradient") {
  for (auto* kernels: tables()) {
    size_t B = kernels->block;
    Window window = {.inHeight = 3,
        .inWidth = 3,
        .outHeight = 1,
        .outWidth = 1,
        .kernel = 3,
        .stride = 1,
        .pad = 0};
    std::vector<float> x(9 * B, -1.0f), out(B), gradient(B, 2.0f), dx(9 * B, 1.0f);
    x[4 * B] = x[7 * B] = 5;
    std::vector<uint16_t> index(B);
    kernels->floats.maxPool(x.data(), window, out.data(), index.data(), 1);
    kernels->floats.maxPoolBackward(
        gradient.data(), index.data(), window, dx.data(), Write::ADD, 1);
    CHECK(out[0] == 5);
    CHECK(dx[4 * B] == 3);
    CHECK(dx[7 * B] == 1);
    // The other channels are equal everywhere.
    CHECK(dx[0 + 1] == 3);
    CHECK(dx[8 * B + 1] == 1);
  }
}

TEST_CASE("kernels: a max pool remembers places in windows of up to 255 rows") {
  for (auto* kernels: tables()) {
    size_t B = kernels->block, side = 255;
    Window window = {.inHeight = 255,
        .inWidth = 255,
        .outHeight = 1,
        .outWidth = 1,
        .kernel = 255,
        .stride = 1,
        .pad = 0};
    std::vector<float> x(side * side * B, 0.0f), out(B), gradient(B, 1.0f), dx(x.size(), 0.0f);
    x.back() = 7;
    std::vector<uint16_t> index(B);
    kernels->floats.maxPool(x.data(), window, out.data(), index.data(), 1);
    kernels->floats.maxPoolBackward(
        gradient.data(), index.data(), window, dx.data(), Write::ADD, 1);
    CHECK(out.back() == 7);
    CHECK(dx.back() == 1);
    CHECK(dx.front() == 1);
  }
}

TEST_CASE("kernels: a max pool computes the same values whether or not it remembers places") {
  Window window = {.inHeight = 7,
      .inWidth = 6,
      .outHeight = 4,
      .outWidth = 3,
      .kernel = 3,
      .stride = 2,
      .pad = 1};
  for (auto* kernels: tables()) {
    size_t blocks = 2, B = kernels->block;
    auto x = draw(blocks * 42 * B), with = draw(blocks * 12 * B), without = draw(blocks * 12 * B);
    std::vector<uint16_t> index(with.size());
    kernels->floats.maxPool(x.data(), window, with.data(), index.data(), blocks);
    kernels->floats.maxPool(x.data(), window, without.data(), nullptr, blocks);
    CHECK(with == without);
  }
}

TEST_CASE("kernels: max pools give each window its largest value, and the gradient to its place") {
  struct Case {
    unsigned height, width, kernel, stride, pad;
  };
  // Tiles of the image, windows that overlap, and windows that lie over its edges.
  for (auto& c: {Case{6, 8, 2, 2, 0}, Case{7, 8, 2, 2, 0}, Case{5, 5, 2, 1, 1}, Case{7, 7, 3, 2, 1},
           Case{6, 6, 3, 3, 0}, Case{9, 7, 4, 2, 1}}) {
    Window window = {.inHeight = c.height,
        .inWidth = c.width,
        .outHeight = (c.height + 2 * c.pad - c.kernel) / c.stride + 1,
        .outWidth = (c.width + 2 * c.pad - c.kernel) / c.stride + 1,
        .kernel = c.kernel,
        .stride = c.stride,
        .pad = c.pad};
    CAPTURE(c.height);
    CAPTURE(c.kernel);
    for (auto* kernels: tables()) {
      size_t blocks = 2, B = kernels->block, pixels = c.height * c.width;
      size_t windows = window.outHeight * window.outWidth;
      auto x = draw(blocks * pixels * B), gradient = draw(blocks * windows * B);
      std::vector<float> out(gradient.size());
      std::vector<uint16_t> index(gradient.size());
      kernels->floats.maxPool(x.data(), window, out.data(), index.data(), blocks);
      for (auto write: {Write::SET, Write::ADD}) {
        std::vector<float> dx(x.size(), 1.0f),
            expected(x.size(), write == Write::ADD ? 1.0f : 0.0f);
        kernels->floats.maxPoolBackward(
            gradient.data(), index.data(), window, dx.data(), write, blocks);
        for (size_t at = 0; at < gradient.size(); ++at) {
          size_t block = at / B / windows, pixel = at / B % windows;
          int top = int(pixel / window.outWidth * c.stride) - int(c.pad);
          int left = int(pixel % window.outWidth * c.stride) - int(c.pad);
          float most = -INFINITY;
          size_t place = 0;
          for (int u = 0; u < int(c.kernel * c.kernel); ++u) {
            int row = top + u / int(c.kernel), column = left + u % int(c.kernel);
            if (row < 0 || row >= int(c.height) || column < 0 || column >= int(c.width)) continue;
            size_t from = (block * pixels + size_t(row) * c.width + size_t(column)) * B + at % B;
            if (x[from] > most) {
              most = x[from];
              place = from;
            }
          }
          CHECK(out[at] == most);
          expected[place] += gradient[at];
        }
        for (size_t i = 0; i < dx.size(); ++i) {
          CHECK(dx[i] == doctest::Approx(expected[i]).epsilon(1e-6));
        }
      }
    }
  }
}

TEST_CASE("kernels: convolutions of plain images are sums over the taps") {
  for (auto* kernels: tables()) {
    size_t B = kernels->block;
    for (size_t blocks: {1, 2, 3, 5}) {
      for (size_t width: {1, 5, 12, 29}) {
        // Two rows of windows of 1×2 pixels, two pixels apart, in each of two channels.
        uint32_t rowFloats = uint32_t(2 * width + 1),
                 places[] = {0, 1, 3 * rowFloats, 3 * rowFloats + 1};
        Planes planes = {.rowFloats = rowFloats,
            .stride = 2,
            .outHeight = 2,
            .outWidth = width,
            .blocks = blocks,
            .taps = 4,
            .places = places};
        auto x = draw(6 * rowFloats), weights = draw(4 * blocks * B), bias = draw(blocks * B);
        auto gradient = draw(2 * width * blocks * B), sums = draw(weights.size());
        auto biasSums = draw(bias.size());
        std::vector<float> y(gradient.size());
        std::vector<double> wanted(sums.begin(), sums.end());
        std::vector<double> wantedBias(biasSums.begin(), biasSums.end());
        kernels->planesForward(x.data(), planes, weights.data(), bias.data(), y.data());
        kernels->planesAccumulate(x.data(), gradient.data(), planes, sums.data(), biasSums.data());
        for (size_t at = 0; at < y.size(); ++at) {
          size_t filter = at / B / (2 * width) * B + at % B, pixel = at / B % (2 * width);
          size_t corner = pixel / width * 2 * rowFloats + pixel % width * 2;
          double value = bias[filter];
          for (size_t t = 0; t < 4; ++t) {
            size_t weight = t * blocks * B + filter;
            value += double(x[corner + places[t]]) * weights[weight];
            wanted[weight] += double(x[corner + places[t]]) * gradient[at];
          }
          wantedBias[filter] += gradient[at];
          CHECK(y[at] == doctest::Approx(value).epsilon(1e-5));
        }
        for (size_t i = 0; i < sums.size(); ++i) {
          CHECK(sums[i] == doctest::Approx(wanted[i]).epsilon(1e-5));
        }
        for (size_t i = 0; i < biasSums.size(); ++i) {
          CHECK(biasSums[i] == doctest::Approx(wantedBias[i]).epsilon(1e-5));
        }
      }
    }
  }
}

TEST_CASE("kernels: batch norm of one pixel has the same bits with AVX2 and with AVX-512") {
  if (tables().size() < 2) return;
  // Two blocks of 8 channels and one of 16 have different orders in memory, except for a single
  // pixel of 16 channels.
  auto y = draw(16), gradient = draw(16), array = draw(16 * 8, 1);
  auto at = [&](size_t i) { return array.data() + 16 * i; };
  Channels channels = {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
  std::vector<float> narrow(16, 0.5f), wide(16, 0.5f);
  AVX2_KERNELS.floats.normalise(y.data(), channels, After::RELU, narrow.data(), 2, 1);
  AVX512_KERNELS.floats.normalise(y.data(), channels, After::RELU, wide.data(), 1, 1);
  CHECK(memcmp(narrow.data(), wide.data(), 64) == 0);
  for (auto write: {Write::SET, Write::ADD}) {
    for (auto rectify: {After::NOTHING, After::RELU}) {
      AVX2_KERNELS.floats.normaliseBackward(
          y.data(), gradient.data(), channels, rectify, narrow.data(), write, 2, 1, 1);
      AVX512_KERNELS.floats.normaliseBackward(
          y.data(), gradient.data(), channels, rectify, wide.data(), write, 1, 1, 1);
      CHECK(memcmp(narrow.data(), wide.data(), 64) == 0);
    }
  }
}

TEST_CASE("kernels: windows are gathered with zeros outside of the image, and scattered back") {
  for (auto* kernels: tables()) {
    size_t B = kernels->block;
    Window window = {.inHeight = 4,
        .inWidth = 5,
        .outHeight = 2,
        .outWidth = 3,
        .kernel = 3,
        .stride = 2,
        .pad = 1};
    for (size_t channels: {size_t(1), B - 1, B, B + 3}) {
      size_t blocks = (channels + B - 1) / B, rowFloats = 9 * channels;
      auto x = draw(blocks * 20 * B);
      std::vector<float> rows(6 * rowFloats + B), back(x.size(), 1.0f), times(x.size(), 0.0f);
      // In two parts.
      kernels->floats.gatherWindows(x.data(), window, channels, 0, 4, rows.data());
      kernels->floats.gatherWindows(x.data(), window, channels, 4, 6, &rows[4 * rowFloats]);
      for (size_t i = 0; i < 6 * rowFloats; ++i) {
        size_t pixel = i / rowFloats, place = i % rowFloats / channels, c = i % channels;
        size_t row = pixel / 3 * 2 + place / 3, column = pixel % 3 * 2 + place % 3;
        bool isInside = row >= 1 && row <= 4 && column >= 1 && column <= 5;
        size_t at = isInside ? (c / B * 20 + (row - 1) * 5 + column - 1) * B + c % B : 0;
        CHECK(rows[i] == (isInside ? x[at] : 0));
        if (isInside) ++times[at];
      }
      for (size_t i = 6 * rowFloats; i < rows.size(); ++i) rows[i] = NAN;
      kernels->floats.scatterWindows(rows.data(), window, channels, 0, 6, back.data());
      for (size_t i = 0; i < x.size(); ++i) {
        CHECK(back[i] == doctest::Approx(1 + times[i] * x[i]).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("kernels: copy() adds any number of values") {
  for (auto* kernels: tables()) {
    for (size_t count: {1, 7, 8, 15, 16, 33}) {
      auto from = draw(count), to = draw(count), before = to;
      kernels->floats.copy(from.data(), to.data(), Write::ADD, count);
      for (size_t i = 0; i < count; ++i) CHECK(to[i] == before[i] + from[i]);
    }
  }
}

// Rounds to the nearest bfloat16, ties to even, as the processor's instruction must.
Bfloat16 nearest(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  bits += 0x7fff + (bits >> 16 & 1);
  return {uint16_t(bits >> 16)};
}

float toFloat(Bfloat16 x) {
  uint32_t bits = uint32_t(x.bits) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// An array of bfloat16s, and the same values as floats.
struct Both {
  std::vector<float> floats;
  std::vector<Bfloat16> halves;

  explicit Both(const std::vector<float>& values): floats(values), halves(values.size()) {
    for (size_t i = 0; i < values.size(); ++i) {
      halves[i] = nearest(values[i]);
      floats[i] = toFloat(halves[i]);
    }
  }
  float* f() { return floats.data(); }
  Bfloat16* h() { return halves.data(); }
  // Whether each half is its float, rounded once.
  bool agree() const {
    for (size_t i = 0; i < floats.size(); ++i) {
      if (nearest(floats[i]).bits != halves[i].bits) return false;
    }
    return true;
  }
};

bool hasBfloat16() {
  return has(dnnl::cpu_isa::avx512_core_bf16);
}

TEST_CASE("kernels: floats are rounded to the nearest bfloat16, ties to even, for any count") {
  if (!hasBfloat16()) SKIP_CASE("no AVX512_BF16 here");
  auto& kernels = AVX512_BFLOAT16_KERNELS;
  for (size_t count: {1, 15, 16, 47}) {
    auto values = draw(count);
    values[0] = 1.00390625f;  // halfway between 1 and the next, 1.0078125
    if (count > 2) values[1] = 1.01171875f, values[2] = -3e38f;
    std::vector<Bfloat16> halves(count + 1, Bfloat16{7});
    std::vector<float> back(count + 1, 7.0f);
    kernels.round(values.data(), halves.data(), Write::SET, count);
    kernels.widen(halves.data(), back.data(), count);
    for (size_t i = 0; i < count; ++i) CHECK(back[i] == toFloat(nearest(values[i])));
    CHECK(back[0] == 1);
    if (count > 2) CHECK(back[1] == 1.015625f);
    kernels.round(values.data(), halves.data(), Write::ADD, count);
    for (size_t i = 0; i < count; ++i) {
      CHECK(toFloat(halves[i]) == toFloat(nearest(back[i] + values[i])));
    }
    CHECK(halves[count].bits == 7);
    CHECK(back[count] == 7);
  }
  float special[] = {INFINITY, -INFINITY, NAN};
  Bfloat16 halves[3];
  kernels.round(special, halves, Write::SET, 3);
  CHECK(toFloat(halves[0]) == INFINITY);
  CHECK(toFloat(halves[1]) == -INFINITY);
  CHECK(std::isnan(toFloat(halves[2])));
}

TEST_CASE("kernels: a loop over bfloat16s gives the result of floats, rounded once") {
  if (!hasBfloat16()) SKIP_CASE("no AVX512_BF16 here");
  auto& floats = AVX512_KERNELS.floats;
  auto& halves = AVX512_BFLOAT16_KERNELS;
  constexpr size_t B = 16, BLOCKS = 2, PIXELS = 35, COUNT = BLOCKS * PIXELS * B;
  auto channel = draw(8 * BLOCKS * B, 1);
  auto at = [&](size_t i) { return &channel[i * BLOCKS * B]; };
  Channels channels = {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
  Both x(draw(COUNT)), g(draw(COUNT)), y(draw(COUNT));
  for (auto after: {After::NOTHING, After::RELU}) {
    floats.normalise(x.f(), channels, after, y.f(), BLOCKS, PIXELS);
    halves.normalise(x.h(), channels, after, y.h(), BLOCKS, PIXELS);
    CHECK(y.agree());
    std::vector<float> sums(4 * BLOCKS * B), partial(2 * BLOCKS * B), other(2 * BLOCKS * B);
    floats.reduceGradient(x.f(), g.f(), channels, after, partial.data(), BLOCKS, PIXELS);
    halves.reduceGradient(x.h(), g.h(), channels, after, other.data(), BLOCKS, PIXELS);
    CHECK(partial == other);
    for (auto write: {Write::SET, Write::ADD}) {
      Both dy(draw(COUNT));
      floats.normaliseBackward(x.f(), g.f(), channels, after, dy.f(), write, BLOCKS, PIXELS, 1);
      halves.normaliseBackward(x.h(), g.h(), channels, after, dy.h(), write, BLOCKS, PIXELS, 1);
      CHECK(dy.agree());
    }
  }
  Both clipped(draw(COUNT));
  floats.addRelu(x.f(), clipped.f(), COUNT);
  halves.addRelu(x.h(), clipped.h(), COUNT);
  CHECK(clipped.agree());
  std::vector<float> partial(2 * BLOCKS * B), other(2 * BLOCKS * B);
  floats.statistics(x.f(), partial.data(), BLOCKS, PIXELS, 1);
  halves.statistics(x.h(), other.data(), BLOCKS, PIXELS, 1);
  CHECK(partial == other);
  for (auto function:
      {&ValueKernels::relu, &ValueKernels::tanh, &ValueKernels::sigmoid, &ValueKernels::elu}) {
    Both out(draw(COUNT)), gradient(draw(COUNT));
    (floats.*function).backward(out.f(), gradient.f(), COUNT);
    (halves.*function).backward(out.h(), gradient.h(), COUNT);
    CHECK(gradient.agree());
    (floats.*function).forward(out.f(), COUNT);
    (halves.*function).forward(out.h(), COUNT);
    CHECK(out.agree());
  }
  for (auto write: {Write::SET, Write::ADD}) {
    Both dropped(draw(COUNT)), scaled(draw(COUNT)), copied(draw(COUNT));
    auto mask = dropoutMask(0.5, 123, 4);
    floats.drop(x.f(), mask, dropped.f(), write, BLOCKS, PIXELS);
    halves.drop(x.h(), mask, dropped.h(), write, BLOCKS, PIXELS);
    CHECK(dropped.agree());
    floats.scale(x.f(), 0.3f, scaled.f(), write, COUNT);
    halves.scale(x.h(), 0.3f, scaled.h(), write, COUNT);
    CHECK(scaled.agree());
    floats.copy(x.f(), copied.f(), write, COUNT - 9);
    halves.copy(x.h(), copied.h(), write, COUNT - 9);
    CHECK(copied.agree());
  }
}

TEST_CASE("kernels: gelu and its slope are right to 1e-4 before bfloat16s are rounded") {
  if (!hasBfloat16()) SKIP_CASE("no AVX512_BF16 here");
  constexpr size_t COUNT = 32;
  for (float from = -40; from < 40; from += 0.01f) {
    Bfloat16 x[COUNT], y[COUNT], one[COUNT], slope[COUNT];
    for (auto& value: x) value = nearest(from);
    for (auto& value: one) value = nearest(1);
    x[1] = nearest(NAN);
    AVX512_BFLOAT16_KERNELS.gelu(x, y, COUNT);
    AVX512_BFLOAT16_KERNELS.geluBackward(x, one, slope, Write::SET, COUNT);
    double value = toFloat(x[0]), below = std::erfc(-value / std::sqrt(2.0)) / 2;
    double height = std::exp(-value * value / 2) / std::sqrt(2 * std::acos(-1.0));
    auto isNear = [](Bfloat16 got, double wanted) {
      constexpr double ROUNDING = 1.0 / 256;
      return std::abs(toFloat(got) - wanted) <= 1e-4 + ROUNDING * std::abs(wanted);
    };
    CHECK(isNear(y[0], value * below));
    CHECK(isNear(slope[0], below + value * height));
    CHECK(std::isnan(toFloat(y[1])));
    CHECK(std::isnan(toFloat(slope[1])));
  }
}

TEST_CASE("kernels: pools over bfloat16s give the result of floats, rounded once") {
  if (!hasBfloat16()) SKIP_CASE("no AVX512_BF16 here");
  auto& floats = AVX512_KERNELS.floats;
  auto& halves = AVX512_BFLOAT16_KERNELS;
  constexpr size_t B = 16, BLOCKS = 2;
  Window window = {.inHeight = 7,
      .inWidth = 6,
      .outHeight = 4,
      .outWidth = 3,
      .kernel = 3,
      .stride = 2,
      .pad = 1};
  constexpr size_t IN = BLOCKS * 42 * B, OUT = BLOCKS * 12 * B;
  Both x(draw(IN)), most(draw(OUT)), mean(draw(OUT)), g(draw(OUT));
  std::vector<uint16_t> index(OUT), other(OUT);
  floats.maxPool(x.f(), window, most.f(), index.data(), BLOCKS);
  halves.maxPool(x.h(), window, most.h(), other.data(), BLOCKS);
  CHECK(most.agree());
  CHECK(index == other);
  floats.averagePool(x.f(), window, mean.f(), BLOCKS);
  halves.averagePool(x.h(), window, mean.h(), BLOCKS);
  CHECK(mean.agree());
  for (auto write: {Write::SET, Write::ADD}) {
    Both first(draw(IN)), second(draw(IN));
    floats.maxPoolBackward(g.f(), index.data(), window, first.f(), write, BLOCKS);
    halves.maxPoolBackward(g.h(), index.data(), window, first.h(), write, BLOCKS);
    CHECK(first.agree());
    floats.averagePoolBackward(g.f(), window, second.f(), write, BLOCKS);
    halves.averagePoolBackward(g.h(), window, second.h(), write, BLOCKS);
    CHECK(second.agree());
  }
}

}  // namespace
}  // namespace nn::cpu
