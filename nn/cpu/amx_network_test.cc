// Whole networks on the tiles of AMX, or of their emulation.
#include <doctest/doctest.h>
#include <kj/exception.h>

#include "nn/cpu/instruction_set.h"
#include "nn/cpu/testing/test_network.h"
#include "tests/skip.h"

namespace nn {
namespace {

bool cannotRun() {
  bool isRefused =
      kj::runCatchingExceptions([]() { requirePrecision(Precision::BF16); }) != nullptr;
  if (!isRefused) useInstructionSet("avx512_amx");
  return isRefused;
}

#define SKIP_WITHOUT_BF16 \
  if (cannotRun()) SKIP_CASE("no AVX512_BF16 here")

// Checks that all convolutions run on AMX, and that the program agrees with the reference.
void check(const Graph& graph, uint images, uint threads, double tolerance) {
  ProgramOptions options = {.batchSize = images, .threads = threads, .precision = Precision::BF16};
  for (auto& name: convolutionImplementations(graph, options)) CHECK(name == "amx");
  checkBf16(graph, images, threads, tolerance);
}

TEST_CASE("amx: an inception network agrees with the reference, whether or not groups are full") {
  SKIP_WITHOUT_BF16;
  Graph graph = smallInception();
  for (uint images: {64, 40, 17, 9}) check(graph, images, 1, 0.15);
  check(graph, 64, 2, 0.15);
  check(graph, 70, 3, 0.15);
}

TEST_CASE("amx: threads that share a group of images agree with the reference") {
  SKIP_WITHOUT_BF16;
  check(smallInception(), 16, 2, 0.15);
  check(smallInception(), 13, 3, 0.15);
  check(smallInception(), 64, 4, 0.15);
}

TEST_CASE("amx: a smooth network with odd channel counts agrees with the reference more closely") {
  SKIP_WITHOUT_BF16;
  Net net({1, 12, 10});
  auto x = net.tanh(net.conv(0, 20, 5, 1, 0));
  x = net.averagePool(x, 2, 2);
  x = net.tanh(net.conv(x, 50, 3, 1, 1));
  x = net.tanh(net.dense(net.dropout(x, 0.25), 70));
  check(net.finish(net.dense(x, 10)), 37, 1, 2e-2);
}

TEST_CASE("amx: a multilayer perceptron with dropout on the images agrees with the reference") {
  SKIP_WITHOUT_BF16;
  Net net({1, 9, 7});
  auto x = net.tanh(net.dense(net.dropout(0, 0.2), 40));
  check(net.finish(net.dense(net.tanh(net.dense(x, 33, false)), 10)), 45, 2, 2e-2);
}

TEST_CASE("amx: a network whose logits come from a pool agrees with the reference") {
  SKIP_WITHOUT_BF16;
  Net net({5, 4, 4});
  check(net.finish(net.averagePool(net.conv(0, 5, 3, 1, 1), 4, 1)), 20, 1, 2e-2);
}

TEST_CASE("amx: gelu, sigmoid, and a pool and a norm of the images agree with the reference") {
  SKIP_WITHOUT_BF16;
  Net net({5, 6, 6});
  auto pooled = net.averagePool(net.norm(0), 2, 1);
  auto x = net.add(Activation{Activation::GELU}, net.norm(net.conv(pooled, 12, 3, 1, 1)));
  x = net.add(Activation{Activation::SIGMOID}, net.conv(x, 20, 2, 1, 0));
  x = net.add(Scale{0.5f}, net.add(Activation{Activation::GELU}, net.conv(x, 7, 3, 1, 1)));
  check(net.finish(net.dense(x, 4)), 50, 1, 4e-2);
}

TEST_CASE("amx: one thread and two give the same bits") {
  SKIP_WITHOUT_BF16;
  Graph graph = smallInception();
  for (uint images: {16, 31, 40, 64, 70, 128}) {
    CAPTURE(images);
    Data data(graph, images);
    Loaded one(CPU, graph, data, 1, Precision::BF16), two(CPU, graph, data, 2, Precision::BF16);
    one.step();
    two.step();
    CHECK(distance(one.program->gradients(), two.program->gradients()) == 0);
    CHECK(distance(one.program->logits(), two.program->logits()) == 0);
    CHECK(distance(one.program->statistics(), two.program->statistics()) == 0);
  }
}

TEST_CASE("amx: a batch that would leave its group mostly empty does not use AMX") {
  SKIP_WITHOUT_BF16;
  ProgramOptions options = {.batchSize = 7, .threads = 1, .precision = Precision::BF16};
  for (auto& name: convolutionImplementations(smallInception(), options)) CHECK(name != "amx");
}

}  // namespace
}  // namespace nn
