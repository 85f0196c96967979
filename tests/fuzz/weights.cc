// A file of weights, of any system, for a network that starts from it, and the file's notes.
#include <kj/debug.h>
#include <math.h>

#include "nn/network/graph.h"
#include "runner/weights/load_weights.h"
#include "runner/weights/weights_notes.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

// A network of one pixel, with every kind of array, and layers with names that many systems use.
const nn::Graph& network() {
  static const auto GRAPH = []() {
    configs::Diagnostics diagnostics;
    nn::GraphBuilder builder({1}, diagnostics);
    nn::NodeId last = 0;
    auto add = [&](kj::StringPtr name, nn::Op op) {
      last = builder.add(name, kj::mv(op), kj::arrayPtr(&last, 1), {});
    };
    add("conv0", nn::Conv2d{.filters = 1, .kernel = 1, .stride = 1, .pad = 0, .bias = true});
    add("conv0_bn", nn::BatchNorm{.epsilon = 1, .momentum = 0, .fixedGamma = false});
    add("stage1_unit1_conv1", nn::Conv2d{1, 1, 1, 0, false});
    add("in3a_double3x3_0", nn::Conv2d{1, 1, 1, 0, false});
    add("fc", nn::Dense{.units = 2, .bias = true});
    auto graph = builder.finish(last, {});
    must(diagnostics.count() == 0, "the network is right");
    return graph;
  }();
  return GRAPH;
}

// The value of floats that no file has set.
constexpr float UNTOUCHED = -1;

}  // namespace

void feed(Bytes input) {
  auto& graph = network();
  auto file = runner::openWeights(fileOf("weights", input));
  auto parameters = kj::heapArray<float>(graph.parameters);
  auto statistics = kj::heapArray<float>(graph.statisticsSize);
  for (auto& x: parameters) x = UNTOUCHED;
  for (auto& x: statistics) x = UNTOUCHED;
  auto skip = kj::arr(kj::str("fc_w*"));
  auto report = runner::loadWeights(file, graph, skip, parameters, statistics);
  report.text();
  report.whyIncomplete();
  must(report.loaded.size() + report.skipped.size() + report.missing.size() +
               report.misfits.size() ==
           graph.keys.size() + graph.statistics.size(),
      "each array of the network is in one list");
  must(report.skipped.size() == 1, "one array was skipped");
  for (float x: parameters) must(isfinite(x), "weights are finite");
  for (float x: statistics) must(isfinite(x), "statistics are finite");
  runner::readNotes(file);
  auto& skipped = graph.keys[graph.keys.size() - 2];
  must(parameters[skipped.offset] == UNTOUCHED, "what was skipped keeps its value");
}

}  // namespace fuzz
