#include "runner/weights/load_weights.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <math.h>

#include "configs/language/failure.h"
#include "nn/optimizer/update_rules.h"
#include "runner/checkpoints/float_values.h"
#include "runner/checkpoints/weights.h"
#include "runner/weights/name_maps.h"

namespace runner {

namespace {

constexpr size_t SHOWN = 6;

// Returns the first names of a list, and how many more there are.
kj::String listed(kj::ArrayPtr<const kj::String> names) {
  auto shown = names.slice(0, kj::min(SHOWN, names.size()));
  auto rest = names.size() - shown.size();
  return kj::str(kj::strArray(shown, ", "), rest > 0 ? kj::str(" and ", rest, " more") : kj::str());
}

// Copies arrays of one file into one network.
class Loading {
public:
  Loading(const WeightsFile& file, const nn::Graph& graph, kj::ArrayPtr<const kj::String> skip)
      : file(file),
        graph(graph),
        skip(skip),
        isUsed(kj::heapArray<bool>(file.arrays.size())),
        takers(kj::heapArray<kj::StringPtr>(file.arrays.size())) {
    for (auto& used: isUsed) used = false;
    for (auto i: kj::indices(file.arrays))
      places.findOrCreate(file.arrays[i].name, [&]() {
        return kj::HashMap<kj::StringPtr, size_t>::Entry{file.arrays[i].name, i};
      });
  }

  // Takes the array `name` of `node`. If `isHeld`, the network treats its values as 1, whatever
  // they are.
  void take(nn::NodeId node, kj::StringPtr name, kj::StringPtr shape, kj::ArrayPtr<float> to,
      bool isHeld = false) {
    auto place = find(node, name);
    for (auto& pattern: skip) {
      if (!nn::matches(pattern, name)) continue;
      report.skipped.add(kj::str(name));
      KJ_IF_MAYBE(i, place) isUsed[*i] = true;
      return;
    }
    KJ_IF_MAYBE(i, place) {
      isUsed[*i] = true;
      requireFirst(*i, name);
      copy(file.arrays[*i], name, shape, to, isHeld);
    } else {
      report.missing.add(kj::str(name));
    }
  }

  LoadReport finish() {
    for (auto i: kj::indices(isUsed)) {
      auto& name = file.arrays[i].name;
      if (!isUsed[i] && !isBookkeeping(name)) report.unused.add(kj::str(name));
    }
    return kj::mv(report);
  }

private:
  kj::Maybe<size_t> find(nn::NodeId node, kj::StringPtr name) const {
    KJ_IF_MAYBE(i, places.find(name)) return *i;
    for (auto& other: namesElsewhere(graph, node, name)) {
      KJ_IF_MAYBE(i, places.find(other)) return *i;
    }
    return nullptr;
  }

  // Throws if another array of the network has already taken array `i` of the file. This happens if
  // our name of one layer is another system's name of another layer. Layers do not share weights.
  void requireFirst(size_t i, kj::StringPtr name) {
    auto& taker = takers[i];
    if (taker != nullptr) {
      configs::fail(file.path, ": `", file.arrays[i].name, "` would be both `", taker, "` and `",
          name, "` of the network. Name one of these in `skip`, or add its own array to the file");
    }
    taker = name;
  }

  void copy(const FoundTensor& array, kj::StringPtr name, kj::StringPtr shape,
      kj::ArrayPtr<float> to, bool isHeld) {
    if (array.shape != shape) {
      report.misfits.add(LoadReport::Misfit{kj::str(name), kj::str(array.shape), kj::str(shape)});
      return;
    }
    if (!hasFloats(array)) {
      configs::fail(file.path, ": `", array.name, "` has the type ", array.type,
          ", but weights are real numbers. Save them as float32");
    }
    writeFloats(array, to);
    for (float x: to) {
      if (!isfinite(x)) {
        configs::fail(file.path, ": `", array.name, "` holds ", x,
            ". Weights must be finite; take those of an earlier epoch or checkpoint");
      }
      if (isHeld && x != 1) {
        configs::fail(file.path, ": `", array.name, "` holds ", x, ", but the network takes `",
            name,
            "` as 1, because its batch norm has `fixed_gamma`. Choose `conventions` or layers ",
            "that learn it, or name the array in `skip`");
      }
    }
    report.loaded.add(kj::str(name));
  }

  const WeightsFile& file;
  const nn::Graph& graph;
  kj::HashMap<kj::StringPtr, size_t> places;  // of the arrays in `file`, by name
  kj::ArrayPtr<const kj::String> skip;
  // Per array of the file: whether the network uses it, and the network's array that has taken it,
  // or null.
  kj::Array<bool> isUsed;
  kj::Array<kj::StringPtr> takers;
  LoadReport report;
};

}  // namespace

kj::String LoadReport::text() const {
  kj::Vector<kj::String> parts;
  parts.add(kj::str("loaded ", loaded.size(), loaded.size() == 1 ? " array" : " arrays"));
  if (!skipped.empty()) parts.add(kj::str("skipped ", listed(skipped)));
  if (!missing.empty()) parts.add(kj::str("not in the file: ", listed(missing)));
  for (auto& misfit: misfits) {
    parts.add(kj::str("`", misfit.name, "` has the shape ", shapeText(misfit.inFile),
        " in the file, and ", shapeText(misfit.inNetwork), " in the network"));
  }
  if (!unused.empty()) parts.add(kj::str("not in the network: ", listed(unused)));
  return kj::strArray(parts, "; ");
}

kj::Maybe<kj::String> LoadReport::whyIncomplete() const {
  if (loaded.empty() && skipped.empty() && misfits.empty()) {
    return kj::str("none of its ", unused.size(), " arrays (", listed(unused),
        ") belongs to this network, which has ", listed(missing));
  }
  if (!misfits.empty()) {
    auto& first = misfits.front();
    return kj::str("`", first.name, "` has the shape ", shapeText(first.inFile),
        " there, but the network's has ", shapeText(first.inNetwork),
        misfits.size() > 1 ? kj::str(" (and ", misfits.size() - 1, " more)") : kj::str());
  }
  if (!missing.empty()) {
    bool areBiases = true;
    for (auto& name: missing) areBiases = areBiases && name.endsWith("_bias");
    return kj::str("it does not have ", listed(missing),
        areBiases ? ". Its layers probably have no biases, which is the same as biases of 0. "
                    "Arrays that are named in `skip` keep their initial values: 0, unless `init` "
                    "says otherwise"
                  : "");
  }
  return nullptr;
}

LoadReport loadWeights(const WeightsFile& file, const nn::Graph& graph,
    kj::ArrayPtr<const kj::String> skip, kj::ArrayPtr<float> parameters,
    kj::ArrayPtr<float> statistics) {
  KJ_REQUIRE(parameters.size() == graph.parameters);
  KJ_REQUIRE(statistics.size() == graph.statisticsSize);
  Loading loading(file, graph, skip);
  for (auto& key: graph.keys) {
    loading.take(key.node, key.name, shapeOf(key, graph),
        parameters.slice(key.offset, key.offset + key.size), key.isHeld());
  }
  for (auto& statistic: graph.statistics) {
    loading.take(statistic.node, statistic.name, kj::str(statistic.size),
        statistics.slice(statistic.offset, statistic.offset + statistic.size));
  }
  return loading.finish();
}

}  // namespace runner
