// Tests our own Winograd convolution: that it is exact, in one tile and in networks, and which
// convolutions run on it.
#include "nn/cpu/winograd.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <dnnl.hpp>
#include <random>
#include <vector>

#include "nn/cpu/testing/test_network.h"

namespace nn {
namespace {

namespace cpu = nn::cpu;

struct Tables {
  const cpu::Winograd& products;
  const cpu::WinogradImages& images;
};

bool has(dnnl::cpu_isa level) {
  auto bits = unsigned(dnnl::get_effective_cpu_isa());
  return (bits & unsigned(level)) == unsigned(level);
}

// The tables for floats that can run here.
std::vector<Tables> tables() {
  std::vector<Tables> tables;
  for (uint w = 0; w < 2; ++w) {
    if (has(dnnl::cpu_isa::avx2)) {
      tables.push_back({cpu::AVX2_WINOGRAD[w], cpu::AVX2_WINOGRAD_IMAGES[w]});
    }
    if (has(dnnl::cpu_isa::avx512_core)) {
      tables.push_back({cpu::AVX512_WINOGRAD[w], cpu::AVX512_WINOGRAD_IMAGES[w]});
    }
  }
  return tables;
}

std::vector<float> draw(size_t count) {
  static thread_local std::mt19937 random(1);
  std::vector<float> x(count);
  for (auto& value: x) value = float(random() % 2001) / 1000 - 1;
  return x;
}

double distanceOf(const std::vector<float>& left, const std::vector<double>& right) {
  double sum = 0, length = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    sum += (left[i] - right[i]) * (left[i] - right[i]);
    length += right[i] * right[i];
  }
  return std::sqrt(sum / length);
}

TEST_CASE("winograd: a tile's outputs and its gradients are right to the last digits") {
  for (auto& [products, images]: tables()) {
    // One panel with one tile; `blocks` blocks of inputs, one of outputs.
    size_t window = products.window, taps = window * window;
    size_t side = products.side, points = side * side, inputs = 60;
    size_t panel = products.panel, block = 2 * panel, blocks = 64 / block;
    CAPTURE(window);
    CAPTURE(block);
    size_t tileFloats = products.slots * panel * block, weightFloats = 64 * block;
    auto x = draw(64 * points), g = draw(block * inputs * taps), dy = draw(block * 16);
    std::vector<float> v(blocks * tileFloats), m(tileFloats), u(points * weightFloats),
        y(block * 16);
    images.transformInput(x.data(), side, side, {0, 0, 4, 4}, blocks, v.data());
    for (size_t c = 0; c < inputs; ++c) {
      size_t place = products.weightsPlace(64, 1, c, 0);
      products.transformWeights(
          g.data() + c * taps, inputs * taps, block, false, u.data() + place, weightFloats);
    }
    cpu::PanelRun run = {.panel = 0, .tiles = 1};
    auto point = [&](std::vector<float>& array, size_t p) {
      return array.data() + p * panel * block;
    };
    for (size_t p = 0; p < points; ++p) {
      products.multiply(point(v, p), u.data() + p * weightFloats, point(m, p), &run, 1, inputs, 1);
    }
    images.transformOutput(m.data(), {0, 0, 4, 4}, 1, nullptr, cpu::Write::SET, y.data(), 4, 4);
    std::fill(u.begin(), u.end(), 0.0f);
    std::vector<float> dg(g.size()), sums(block);
    images.transformGradient(dy.data(), 4, 4, {0, 0, 4, 4}, 1, m.data(), sums.data());
    for (size_t p = 0; p < points; ++p) {
      products.accumulate(
          point(v, p), point(m, p), u.data() + p * weightFloats, &run, 1, inputs, 1);
    }
    for (size_t c = 0; c < inputs; ++c) {
      size_t place = products.weightsPlace(64, 1, c, 0);
      products.gatherWeights(
          u.data() + place, 0, 1, weightFloats, dg.data() + c * taps, inputs * taps, block);
    }

    // dx, from the transformed dy, which `m` still has, and the transposed weights.
    std::fill(u.begin(), u.end(), 0.0f);
    for (size_t k = 0; k < block; ++k) {
      for (size_t c = 0; c < inputs; c += block) {
        size_t place = products.weightsPlace(block, blocks, k, c / block);
        products.transformWeights(g.data() + (k * inputs + c) * taps, taps,
            std::min(block, inputs - c), false, u.data() + place, weightFloats);
      }
    }
    for (size_t p = 0; p < points; ++p) {
      products.multiply(
          point(m, p), u.data() + p * weightFloats, point(v, p), &run, 1, block, blocks);
    }
    std::vector<float> dx(x.size());
    images.transformInputBack(v.data(), {0, 0, 4, 4}, blocks, dx.data(), side, side);

    std::vector<double> yExact(y.size()), dgExact(g.size()), dxExact(x.size()), sumsExact(block);
    for (size_t k = 0; k < block; ++k) {
      for (size_t pixel = 0; pixel < 16; ++pixel) {
        double slope = dy[pixel * block + k];
        sumsExact[k] += slope;
        for (size_t c = 0; c < inputs; ++c) {
          for (size_t e = 0; e < taps; ++e) {
            size_t row = pixel / 4 + e / window, column = pixel % 4 + e % window;
            size_t at = (c / block * points + row * side + column) * block + c % block;
            double value = x[at];
            dxExact[at] += slope * g[(k * inputs + c) * taps + e];
            yExact[pixel * block + k] += value * g[(k * inputs + c) * taps + e];
            dgExact[(k * inputs + c) * taps + e] += value * slope;
          }
        }
      }
    }
    // More points lose more digits.
    double bound = window == 3 ? 1e-6 : 5e-6;
    CHECK(distanceOf(y, yExact) < bound);
    CHECK(distanceOf(dg, dgExact) < bound);
    CHECK(distanceOf(dx, dxExact) < bound);
    CHECK(distanceOf(sums, sumsExact) < 1e-6);
  }
}

TEST_CASE("winograd: convolutions of odd channel counts and sides agree with the reference") {
  struct Case {
    uint inputs, filters, side, pad, window = 3;
  };
  // Tiles of both sizes, alone and together. Sides that do not fill the last tile. Groups of one,
  // two, three and more blocks. More filters than inputs, and fewer.
  for (auto& c: {Case{4, 3, 3, 1}, Case{10, 17, 5, 1}, Case{17, 10, 7, 1}, Case{24, 40, 6, 0},
           Case{16, 3, 14, 1}, Case{5, 70, 9, 0}, Case{10, 24, 15, 1}, Case{4, 5, 31, 1},
           Case{33, 17, 8, 1}, Case{17, 17, 13, 0}, Case{7, 4, 28, 1}, Case{20, 50, 12, 0, 5},
           Case{10, 17, 7, 2, 5}, Case{17, 5, 9, 1, 5}, Case{4, 33, 5, 2, 5},
           Case{16, 16, 15, 2, 5}, Case{8, 9, 9, 0, 5}, Case{8, 9, 7, 0, 5}}) {
    CAPTURE(c.window);
    CAPTURE(c.inputs);
    CAPTURE(c.filters);
    CAPTURE(c.side);
    CAPTURE(c.pad);
    for (bool bias: {false, true}) {
      Net net({3, c.side, c.side});
      auto x = net.tanh(net.conv(0, c.inputs, 1, 1, 0));
      auto y = net.conv(x, c.filters, c.window, 1, c.pad, bias);
      // A second convolution reads the same input, so that its gradient is added to the first
      // one's.
      auto z = net.conv(x, c.filters, c.window, 1, c.pad, bias);
      checkWithThreads(net.finish(net.dense(net.add(Add{}, {y, z}), 4)));
    }
  }
}

TEST_CASE("winograd: images that are not square agree with the reference") {
  Net net({3, 5, 12});
  auto x = net.conv(net.tanh(net.conv(0, 8, 1, 1, 0)), 12, 3, 1, 1);
  checkWithThreads(net.finish(net.dense(net.conv(x, 6, 3, 1, 0), 4)));
}

TEST_CASE("winograd: steps with the same number of threads have the same bits") {
  Net net({3, 14, 14});
  auto x = net.factory(net.factory(0, 20, 3, 1, 1), 24, 3, 1, 1);
  Graph graph = net.finish(net.dense(x, 4));
  Data data(graph, 11);
  for (uint threads: {1u, 3u}) {
    Loaded one(CPU, graph, data, threads), other(CPU, graph, data, threads);
    one.step();
    other.step();
    one.step();  // uses the leftovers of the first one in scratch memory
    CHECK(one.program->gradients() == other.program->gradients());
  }
}

TEST_CASE("winograd: runs 3×3 and 5×5 convolutions of stride 1 with enough channels and pixels") {
  struct Case {
    uint inputs, filters, side, kernel, stride, pad;
    bool isOurs;
    uint images = 2;
  };
  for (auto& c: {Case{16, 16, 14, 3, 1, 1, true}, Case{4, 5, 3, 3, 1, 1, true},
           Case{256, 256, 3, 3, 1, 1, false}, Case{256, 256, 3, 3, 1, 1, true, 32},
           Case{16, 16, 14, 3, 1, 0, true}, Case{3, 16, 14, 3, 1, 1, false},
           Case{16, 16, 14, 3, 2, 1, false}, Case{16, 16, 14, 1, 1, 0, false},
           Case{16, 16, 2, 3, 1, 1, false}, Case{16, 16, 4, 3, 1, 0, false},
           Case{512, 512, 4, 3, 1, 1, false, 64}, Case{20, 50, 12, 5, 1, 0, true},
           Case{16, 16, 14, 5, 1, 2, true}, Case{16, 16, 14, 5, 2, 2, false},
           Case{16, 16, 14, 5, 1, 3, false}, Case{1, 20, 28, 5, 1, 0, false},
           Case{16, 16, 14, 7, 1, 3, false}}) {
    CAPTURE(c.inputs);
    CAPTURE(c.side);
    CAPTURE(c.kernel);
    Net net({c.inputs, c.side, c.side});
    Graph graph = net.finish(net.dense(net.conv(0, c.filters, c.kernel, c.stride, c.pad), 2));
    auto names = convolutionImplementations(graph, {.batchSize = c.images, .threads = 1});
    REQUIRE(names.size() >= 1);
    CHECK((names[0] == "winograd") == c.isOurs);
  }
}

}  // namespace
}  // namespace nn
