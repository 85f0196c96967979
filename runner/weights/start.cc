#include "runner/weights/start.h"

#include "configs/language/failure.h"
#include "nn/optimizer/update_rules.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

bool isAnArray(kj::StringPtr pattern, const nn::Graph& graph) {
  for (auto& key: graph.keys) {
    if (nn::matches(pattern, key.name)) return true;
  }
  for (auto& statistic: graph.statistics) {
    if (nn::matches(pattern, statistic.name)) return true;
  }
  return false;
}

}  // namespace

LoadReport startFrom(const StartWeights& start, const nn::Graph& graph,
    kj::ArrayPtr<float> parameters, kj::ArrayPtr<float> statistics) {
  auto file = openWeights(start.path);
  auto report = loadWeights(file, graph, start.skip, parameters, statistics);
  KJ_IF_MAYBE(why, report.whyIncomplete()) {
    configs::fail("the weights ", file.path, " do not fit this network: ", *why);
  }
  return report;
}

kj::Maybe<kj::String> checkStart(
    const Experiment& experiment, const nn::Graph& graph, configs::Diagnostics& diagnostics) {
  KJ_IF_MAYBE(start, experiment.start) {
    for (auto& pattern: start->skip) {
      if (isAnArray(pattern, graph)) continue;
      diagnostics.error(start->skipSpan,
          kj::str("the network has no array `", pattern, "` that could be skipped"),
          graph.keys.size() == 0
              ? kj::str("it has no arrays at all: leave `weights` and `skip` out")
              : kj::str("its arrays: ", graph.keys[0].name, ", …; `runner explain` lists them"));
      return nullptr;
    }
    auto open = [&]() { openWeights(start->path); };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(open)) {
      diagnostics.error(start->span, reasonOf(*e));
      return nullptr;
    }
    auto parameters = kj::heapArray<float>(graph.parameters);
    auto statistics = kj::heapArray<float>(graph.statisticsSize);
    kj::String line;
    auto load = [&]() {
      auto report = startFrom(*start, graph, parameters, statistics);
      line = kj::str("weights of ", start->path, ": ", report.text());
    };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(load)) {
      diagnostics.error(start->span, reasonOf(*e),
          "choose weights of the same network, or name in `skip` the arrays that should start from "
          "initial values");
      return nullptr;
    }
    return kj::mv(line);
  }
  return nullptr;
}

}  // namespace runner
