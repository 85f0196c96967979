// Tests programs with bfloat16 values: their results, the code that they run on, and where they are
// refused.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/exception.h>

#include "nn/cpu/testing/test_network.h"
#include "tests/skip.h"

namespace nn {
namespace {

// Returns the error message if bfloat16 cannot run here, else null.
kj::Maybe<kj::String> refusal() {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([]() { requirePrecision(Precision::BF16); })) {
    return kj::str(e->getDescription());
  }
  return nullptr;
}

#define SKIP_WITHOUT_BF16 \
  if (refusal() != nullptr) SKIP_CASE("no AVX512_BF16 here")

TEST_CASE("bf16: a processor without it is refused, with the key, the cause and the way out") {
  Net net({1, 4, 4});
  Graph graph = net.finish(net.dense(0, 2));
  auto thrown = kj::runCatchingExceptions(
      [&]() { CPU.lower(graph, {.batchSize = 1, .precision = Precision::BF16}); });
  auto text = refusal();
  REQUIRE((thrown == nullptr) == (text == nullptr));
  KJ_IF_MAYBE(e, thrown) {
    kj::StringPtr line = e->getDescription();
    CHECK(line == KJ_ASSERT_NONNULL(text));
    for (auto word: {"train.precision", "AVX512_BF16", "DNNL_MAX_CPU_ISA", "\"fp32\""}) {
      CAPTURE(word);
      CHECK(strstr(line.cStr(), word) != nullptr);
    }
    CHECK(line.findFirst('\n') == nullptr);
  }
}

TEST_CASE("bf16: an inception network agrees with the reference") {
  SKIP_WITHOUT_BF16;
  checkBf16(smallInception(), 8, 1, 0.15);
  checkBf16(smallInception(), 7, 3, 0.15);
}

TEST_CASE("bf16: a smooth network with odd channel counts agrees with the reference more closely") {
  SKIP_WITHOUT_BF16;
  Net net({3, 9, 9});
  auto x = net.tanh(net.conv(0, 10, 3, 1, 1));
  auto y = net.conv(x, 17, 3, 1, 1), z = net.conv(x, 17, 1, 1, 0);
  x = net.tanh(net.norm(net.add(Add{}, {y, z})));
  x = net.add(Concat{}, {x, net.conv(x, 3, 5, 1, 2)});
  Graph graph = net.finish(net.dense(net.averagePool(x, 9, 1), 5));
  checkBf16(graph, 8, 1, 2e-2);
  checkBf16(graph, 7, 3, 2e-2);
}

TEST_CASE(
    "bf16: convolutions as matrix products, also with added gradients, agree with the reference") {
  SKIP_WITHOUT_BF16;
  struct Case {
    uint inputs, filters, side, kernel, stride, pad;
  };
  for (auto& c: {Case{3, 5, 2, 7, 1, 3}, Case{16, 16, 2, 5, 2, 2}, Case{5, 4, 9, 15, 1, 7}}) {
    CAPTURE(c.inputs);
    CAPTURE(c.kernel);
    Net net({3, c.side, c.side});
    auto x = net.tanh(net.conv(0, c.inputs, 1, 1, 0));
    auto y = net.conv(x, c.filters, c.kernel, c.stride, c.pad);
    auto z = net.conv(x, c.filters, c.kernel, c.stride, c.pad, false);
    Graph graph = net.finish(net.dense(net.add(Add{}, {y, z}), 4));
    auto names = convolutionImplementations(graph, {.batchSize = 3, .precision = Precision::BF16});
    CHECK(names.back() == "sgemm");
    checkBf16(graph, 8, 1, 2e-2);
    checkBf16(graph, 7, 3, 2e-2);
  }
}

TEST_CASE("bf16: weights that read nothing but padding have no gradient") {
  SKIP_WITHOUT_BF16;
  for (auto& c: {Conv2d{24, 3, 2, 1, true}, Conv2d{24, 3, 3, 1, true}, Conv2d{24, 2, 3, 1, true}}) {
    uint side = c.stride - 1;
    CAPTURE(c.kernel);
    CAPTURE(c.stride);
    Net net({3, side, side});
    // These layers leave values in the scratch memory of the next one.
    auto x = net.tanh(net.conv(net.tanh(net.conv(0, 64, 1, 1, 0)), 20, 1, 1, 0));
    Graph graph = net.finish(net.dense(net.tanh(net.add(Conv2d(c), x)), 5));
    checkBf16(graph, 8, 2, 5e-2);

    Data data(graph, 8);
    Loaded ours(CPU, graph, data, 2, Precision::BF16);
    for (uint i = 0; i < 2; ++i) {
      ours.forward(Phase::VALIDATE);
      ours.step();
    }
    auto& key = graph.keys[4];
    REQUIRE(key.size == 24 * 20 * c.kernel * c.kernel);
    // There is one window, which begins `pad` before the image.
    auto isPadding = [&](uint at) { return at < c.pad || at >= c.pad + side; };
    for (size_t i = 0; i < key.size; ++i) {
      uint column = i % c.kernel, row = i / c.kernel % c.kernel;
      if (!isPadding(row) && !isPadding(column)) continue;
      float gradient = ours.program->gradients()[key.offset + i];
      if (gradient != 0) FAIL_CHECK("row ", row, ", column ", column, ": ", gradient);
    }
  }
}

TEST_CASE("bf16: convolutions of all channel counts and usual kernels run on fast code") {
  SKIP_WITHOUT_BF16;
  for (uint few: {1, 3, 4, 10, 16, 17}) {
    for (uint many: {3, 8, 16, 20, 33}) {
      for (uint kernel: {1, 3, 5, 7}) {
        for (uint stride: {1, 2}) {
          CAPTURE(few);
          CAPTURE(many);
          CAPTURE(kernel);
          CAPTURE(stride);
          Net net({few, 14, 14});
          auto x = net.conv(0, many, kernel, stride, kernel / 2);
          Graph graph = net.finish(net.dense(net.conv(x, few, kernel, stride, kernel / 2), 2));
          ProgramOptions options = {.batchSize = 2, .precision = Precision::BF16};
          for (auto& name: convolutionImplementations(graph, options)) {
            CAPTURE(name.cStr());
            // Without oneDNN's AMX, whose sums have other bits.
            bool isOnednn =
                name == "jit_bf16:avx512_core_bf16" || name == "jit_bf16_1x1:avx512_core_bf16";
            CHECK(
                (isOnednn || ((kernel == 3 || kernel == 5) && stride == 1 && name == "winograd")));
          }
        }
      }
    }
  }
}

TEST_CASE("bf16: a 3×3 convolution needs more images than float32 before it runs on Winograd") {
  SKIP_WITHOUT_BF16;
  Net net({256, 3, 3});
  Graph graph = net.finish(net.dense(net.conv(0, 256, 3, 1, 1), 2));
  auto isWinograd = [&](uint images, Precision precision) {
    ProgramOptions options = {.batchSize = images, .precision = precision};
    return convolutionImplementations(graph, options)[0] == "winograd";
  };
  CHECK(isWinograd(64, Precision::FP32));
  CHECK(!isWinograd(64, Precision::BF16));
  CHECK(isWinograd(128, Precision::BF16));
}

TEST_CASE("bf16: a step gives the same bits every time, for each number of threads") {
  SKIP_WITHOUT_BF16;
  Graph graph = smallInception();
  Data data(graph, 10);
  for (uint threads: {1u, 2u, 3u}) {
    CAPTURE(threads);
    Loaded first(CPU, graph, data, threads, Precision::BF16);
    Loaded second(CPU, graph, data, threads, Precision::BF16);
    first.step();
    second.step();
    auto before = kj::heapArray<float>(first.program->gradients());
    memcpy(second.program->statistics().begin(), data.statistics.begin(), 4 * graph.statisticsSize);
    second.forward(Phase::VALIDATE);
    second.step();
    auto after = second.program->gradients();
    CHECK(memcmp(before.begin(), after.begin(), 4 * before.size()) == 0);
  }
}

TEST_CASE("bf16: a network of dense layers alone stays float32") {
  SKIP_WITHOUT_BF16;
  Net net({3, 5, 5});
  auto x = net.add(Scale{0.5f}, net.dropout(net.relu(net.dense(net.dropout(0, 0.2), 10)), 0.1));
  Graph graph = net.finish(x);
  Data data(graph, 6);
  Loaded bf16(CPU, graph, data, 2, Precision::BF16), fp32(CPU, graph, data, 2);
  bf16.step();
  fp32.step();
  CHECK(distance(bf16.program->logits(), fp32.program->logits()) == 0);
  CHECK(distance(bf16.program->gradients(), fp32.program->gradients()) == 0);
}

TEST_CASE("bf16: a network whose logits come from a pool agrees with the reference") {
  SKIP_WITHOUT_BF16;
  Net net({3, 4, 4});
  checkBf16(net.finish(net.averagePool(net.conv(0, 5, 3, 1, 1), 4, 1)), 8, 1, 2e-2);
}

TEST_CASE("bf16: a program takes little more than half of the memory") {
  SKIP_WITHOUT_BF16;
  Graph graph = smallInception();
  Data data(graph, 64);
  Loaded bf16(CPU, graph, data, 1, Precision::BF16), fp32(CPU, graph, data, 1);
  CHECK(double(bf16.program->memory_bytes()) < 0.65 * double(fp32.program->memory_bytes()));
}

}  // namespace
}  // namespace nn
