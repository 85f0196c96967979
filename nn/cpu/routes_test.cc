// Tests which code a convolution runs on, and that all of this code agrees with the reference.
#include <doctest/doctest.h>

#include "nn/cpu/testing/test_network.h"

namespace nn {
namespace {

TEST_CASE("cpu: convolutions of all channel counts and usual kernels run on fast code") {
  static constexpr uint COUNTS[] = {1, 3, 4, 5, 8, 10, 12, 16, 17, 20};
  for (uint few: COUNTS) {
    for (uint many: COUNTS) {
      if (many < few) continue;
      for (uint kernel: {1, 3, 5, 7}) {
        for (uint stride: {1, 2}) {
          CAPTURE(few);
          CAPTURE(many);
          CAPTURE(kernel);
          CAPTURE(stride);
          Net net({few, 14, 14});
          auto x = net.conv(0, many, kernel, stride, kernel / 2);
          Graph graph = net.finish(net.dense(net.conv(x, few, kernel, stride, kernel / 2), 2));
          for (auto& name: convolutionImplementations(graph, {.batchSize = 2, .threads = 1})) {
            CAPTURE(name.cStr());
            // Matrix products are chosen where channels fill their blocks badly.
            bool mayBeProduct = instructionSet() != "avx2" && kernel > 3 && few > 16;
            bool mayBeOurs = (kernel == 3 || kernel == 5) && stride == 1;
            bool mayBePlanes = instructionSet() == "avx2" && few < 3;
            CHECK((name.startsWith("jit") || (mayBeOurs && name == "winograd") ||
                   (mayBeProduct && name == "sgemm") || (mayBePlanes && name == "planes")));
          }
        }
      }
    }
  }
}

TEST_CASE("cpu: lenet's second convolution uses Winograd, its first one does not") {
  Net net({1, 28, 28});
  auto x = net.maxPool(net.tanh(net.conv(0, 20, 5, 1, 0)), 2, 2);
  x = net.maxPool(net.tanh(net.conv(x, 50, 5, 1, 0)), 2, 2);
  Graph lenet = net.finish(net.dense(x, 10));
  auto names = convolutionImplementations(lenet, {.batchSize = 20, .threads = 1});
  REQUIRE(names.size() >= 3);
  CHECK((instructionSet() == "avx2" ? names[0] == "planes" : names[0].startsWith("jit")));
  CHECK(names.back() == "winograd");
}

TEST_CASE("cpu: convolutions of images with one or two channels agree with the reference") {
  struct Case {
    uint channels, filters, height, width, kernel, stride, pad;
  };
  // Filters in one to five blocks of 8. Rows that are shorter than a tile, whole tiles, and longer.
  for (auto& c:
      {Case{1, 20, 28, 28, 5, 1, 0}, Case{1, 5, 9, 3, 3, 1, 1}, Case{2, 16, 7, 9, 3, 2, 1},
          Case{2, 33, 11, 16, 7, 2, 3}, Case{1, 40, 12, 13, 1, 1, 0}, Case{1, 8, 5, 40, 2, 1, 0}}) {
    CAPTURE(c.filters);
    CAPTURE(c.kernel);
    for (bool bias: {false, true}) {
      Net net({c.channels, c.height, c.width});
      auto x = net.conv(0, c.filters, c.kernel, c.stride, c.pad, bias);
      // A batch norm is folded into the weights for validation.
      auto y = net.add(Add{}, {net.tanh(x), net.factory(0, c.filters, c.kernel, c.stride, c.pad)});
      checkWithThreads(net.finish(net.dense(y, 4)));
    }
  }
}

TEST_CASE("cpu: a convolution passes on the right gradient to a layer with one channel") {
  Net net({3, 9, 9});
  auto x = net.tanh(net.conv(0, 1, 1, 1, 0));
  checkWithThreads(net.finish(net.dense(net.conv(x, 20, 5, 1, 0), 4)));
}

TEST_CASE("cpu: convolutions that oneDNN has no fast code for run as matrix products") {
  struct Case {
    uint side, kernel, stride, pad;
  };
  for (auto& c: {Case{28, 15, 1, 7}, Case{2, 7, 1, 3}, Case{2, 5, 2, 2}}) {
    for (uint channels: {3u, 16u, 17u}) {
      CAPTURE(c.kernel);
      CAPTURE(channels);
      Net net({channels, c.side, c.side});
      Graph graph = net.finish(net.dense(net.conv(0, channels, c.kernel, c.stride, c.pad), 2));
      auto names = convolutionImplementations(graph, {.batchSize = 3, .threads = 1});
      // One name is for training, and one for validation.
      REQUIRE(names.size() == 2);
      for (auto& name: names) CHECK(name == "sgemm");
    }
  }
}

TEST_CASE("cpu: convolutions as matrix products agree with the reference") {
  struct Case {
    uint inputs, filters, side, kernel, stride, pad;
  };
  // Strips of several images and images of several strips, with and without a remainder.
  for (auto& c: {Case{20, 50, 12, 5, 1, 0}, Case{17, 17, 14, 5, 1, 2}, Case{33, 20, 9, 7, 2, 3},
           Case{3, 5, 2, 7, 1, 3}, Case{16, 16, 2, 5, 2, 2}, Case{5, 4, 9, 15, 1, 7}}) {
    CAPTURE(c.inputs);
    CAPTURE(c.filters);
    CAPTURE(c.kernel);
    for (bool bias: {false, true}) {
      Net net({3, c.side, c.side});
      auto x = net.tanh(net.conv(0, c.inputs, 1, 1, 0));
      auto y = net.conv(x, c.filters, c.kernel, c.stride, c.pad, bias);
      // A second convolution reads the same input, so that its gradient is added to the first
      // one's.
      auto z = net.conv(x, c.filters, c.kernel, c.stride, c.pad, bias);
      checkWithThreads(net.finish(net.dense(net.add(Add{}, {y, z}), 4)));
    }
  }
}

}  // namespace
}  // namespace nn
