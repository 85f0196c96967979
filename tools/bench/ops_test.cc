#include "tools/bench/ops.h"

#include <doctest/doctest.h>

#include "tests/text.h"
#include "tools/bench/figures.h"

namespace tools {
namespace {

using nn::Profile;

// 2×4×4 → conv 3×3 to 4 channels → ReLU → conv 1×1 to 2 → dense: two kinds of convolutions.
nn::Graph network() {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({2, 4, 4}, diagnostics);
  auto add = [&](kj::StringPtr name, nn::Op op, nn::NodeId input) {
    return builder.add(name, kj::mv(op), kj::arrayPtr(&input, 1), {});
  };
  auto x = add("first", nn::Conv2d{4, 3, 1, 1, true}, 0);
  x = add("relu", nn::Activation{nn::Activation::RELU}, x);
  x = add("second", nn::Conv2d{2, 1, 1, 0, true}, x);
  x = add("third", nn::Conv2d{2, 1, 1, 0, false}, x);
  auto graph = builder.finish(add("fc", nn::Dense{5, true}, x), {});
  REQUIRE(diagnostics.count() == 0);
  return graph;
}

// Two steps of two lanes. Node n took n ms per step forward and 10·n ms backward. The ReLU took no
// time, because it was computed with the first convolution.
void fill(Profile& profile, const nn::Graph& graph) {
  uint first = profile.addLanes(2, graph);
  for (nn::NodeId n = 1; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].name == "relu") continue;
    for (uint lane: {first, first + 1}) {
      for (uint step = 0; step < 2; ++step) {
        profile.add(lane, n, Profile::FORWARD, n * 1000000);
        profile.add(lane, n, Profile::BACKWARD, n * 10000000);
      }
    }
  }
}

TEST_CASE("opCosts: time is per step and lane, and a fused op has no row") {
  auto graph = network();
  Profile profile;
  fill(profile, graph);
  auto costs = opCosts(graph, profile, 8, 2);
  REQUIRE(costs.size() == 2 * 5);
  CHECK(costs[0].name == "first");
  CHECK(costs[0].kind == "conv2d 3×3");
  CHECK(costs[0].seconds == doctest::Approx(0.001));
  CHECK(costs[1].seconds == doctest::Approx(0.010));
  CHECK(costs[2].name == "second");
}

TEST_CASE("opCosts: operations and bytes follow the formulas") {
  auto graph = network();
  Profile profile;
  fill(profile, graph);
  auto costs = opCosts(graph, profile, 8, 2);
  // 16 pixels, 4 filters, 2·3·3 taps. Nothing needs the gradient of the images.
  double product = 8 * 2.0 * 16 * 4 * 18;
  CHECK(costs[0].flops == product);
  CHECK(costs[1].flops == product);
  CHECK(costs[0].bytes == 4 * (8 * (32 + 64) + 76));
  CHECK(costs[1].bytes == 4 * (8 * (64 + 32) + 76));
  // The second convolution reads its weights again for the gradient of its input.
  CHECK(costs[3].flops == 2 * costs[2].flops);
  CHECK(costs[3].bytes == 4 * (8 * (32 + 64 + 64) + 2 * 10));
}

TEST_CASE("byKind: sums equal kinds and directions, the longest first") {
  auto graph = network();
  Profile profile;
  fill(profile, graph);
  auto costs = opCosts(graph, profile, 8, 2);
  auto kinds = byKind(costs);
  REQUIRE(kinds.size() == 2 * 4);
  CHECK(kinds[0].kind == "conv2d 1×1");
  CHECK(kinds[0].direction == Profile::BACKWARD);
  CHECK(kinds[0].name == "2");
  CHECK(kinds[0].seconds == doctest::Approx(0.070));
  for (size_t i = 1; i < kinds.size(); ++i) CHECK(kinds[i - 1].seconds >= kinds[i].seconds);
}

TEST_CASE("opTable: shares add up to the step, and `peak` shows what limits an op") {
  auto graph = network();
  Profile profile;
  fill(profile, graph);
  auto costs = opCosts(graph, profile, 8, 2);
  auto table = opTable(costs.slice(0, 1), 0.004, 2e9, 1e15);
  CHECK(inColumns(table, 3) ==
        "op              kind        direction     ms    share  GFLOP/s  GB/s       peak\n"
        "first           conv2d 3×3  forward    1.000   25.0 %      0.0   0.0  0.9 % fma\n"
        "ops                                    1.000   25.0 %\n"
        "waiting, store                         3.000   75.0 %\n"
        "whole step                             4.000  100.0 %\n");
  CHECK(opTable(costs.slice(0, 1), 0.004, 1e15, 3376000).rows[0][7] == "100.0 % copy");
}

}  // namespace
}  // namespace tools
