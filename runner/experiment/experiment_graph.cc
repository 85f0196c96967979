// The network of an experiment: checks of it against a data set, and its graph.
#include <kj/debug.h>

#include "io/batches/stream.h"
#include "io/images/augment.h"
#include "runner/experiment/devices.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/experiment_checks.h"
#include "runner/experiment/run_length.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// Reports the first max pool whose windows are too large for a GPU of the experiment.
void checkPools(
    const Experiment& experiment, const nn::Graph& graph, configs::Diagnostics& diagnostics) {
  for (auto& device: experiment.cluster.devices) {
    if (!isGpu(device)) continue;
    for (auto& node: graph.nodes) {
      if (!node.op.is<nn::Pool>()) continue;
      auto& pool = node.op.get<nn::Pool>();
      constexpr auto MOST = nn::Pool::GPU_KERNEL_MAX;
      if (pool.function != nn::Pool::MAX || pool.kernel <= MOST) continue;
      diagnostics.error(node.span,
          kj::str("layer `", node.name, "` takes the maximum over windows of ", pool.kernel, "×",
              pool.kernel, ", but device `", device, "` computes at most ", MOST, "×", MOST),
          "make the windows smaller, or choose cluster.devices = [\"cpu\"]");
      return;
    }
  }
}

// Reports the first array that its optimizer needs as a whole but that is too large for a message.
void checkMessages(
    const Experiment& experiment, const nn::Graph& graph, configs::Diagnostics& diagnostics) {
  // The values travel as a Data of Cap'n Proto, which has fewer than 2^29 bytes.
  constexpr uint64_t MOST = (uint64_t(1) << 29) / sizeof(float) - 1;
  if (!experiment.kvstore.exchanges()) return;
  auto& rules = experiment.train.rules;
  auto keys = storeKeys(experiment, graph);
  for (auto i: kj::indices(keys)) {
    if (keys[i].splittable || keys[i].size <= MOST) continue;
    auto span = rules.optimizerSpan;
    KJ_IF_MAYBE(group, rules.groupOf(graph.keys[i])) {
      if (rules.groups[*group].optimizer != nullptr) span = rules.groups[*group].optimizerSpan;
    }
    auto optimizer = rules.of(graph.keys[i]).optimizer->name();
    diagnostics.error(span,
        kj::str("`", optimizer, "` needs whole arrays, but `", keys[i].name, "` has ", keys[i].size,
            " values, and a message between worker and server holds at most ", MOST),
        "give this array another optimizer with [[train.groups]], or train with kvstore.mode = "
        "\"local\"");
    return;
  }
}

nn::Graph build(const Experiment& experiment, const io::DatasetFacts& facts,
    configs::Diagnostics& diagnostics) {
  auto shape = io::batchShapeOf(experiment.data.augment, facts.shape);
  size_t errorsBefore = diagnostics.count();
  auto graph =
      nn::buildGraph(experiment.model, nn::Shape{shape.channels, shape.height, shape.width},
          facts.classes, diagnostics, {.smoothing = float(experiment.train.labelSmoothing)});
  // A network that does not fit may have other keys.
  if (diagnostics.count() == errorsBefore) {
    experiment.train.rules.check(graph.keys, diagnostics);
    checkPools(experiment, graph, diagnostics);
    checkMessages(experiment, graph, diagnostics);
  }
  return graph;
}

// Checks groups of keys before the shape of the images is known. The name and the role of a key do
// not depend on that shape.
void checkRules(const Experiment& experiment, configs::Diagnostics& diagnostics) {
  constexpr uint CHANNELS = 3, SIDE = 224, CLASSES = 1000;
  auto shape = io::batchShapeOf(experiment.data.augment, {CHANNELS, SIDE, SIDE});
  configs::Diagnostics unheard;  // errors of shapes, which are dropped
  auto graph = nn::buildGraph(
      experiment.model, nn::Shape{shape.channels, shape.height, shape.width}, CLASSES, unheard);
  experiment.train.rules.check(graph.keys, diagnostics);
}

}  // namespace

void checkNetwork(const Experiment& experiment, configs::Diagnostics& diagnostics) {
  KJ_IF_MAYBE(facts, io::factsOf(experiment.data)) {
    checkAgainst(experiment, *facts, diagnostics);
  } else {
    checkRules(experiment, diagnostics);
  }
}

void checkAgainst(const Experiment& experiment, const io::DatasetFacts& facts,
    configs::Diagnostics& diagnostics) {
  auto& data = experiment.data;
  if (data.heldOut >= facts.trainingRecords) {
    diagnostics.error(data.heldOutSpan,
        kj::str("`held_out` leaves nothing to train on: ", data.dataset->name, " has ",
            counted(facts.trainingRecords, "training record")),
        kj::str("hold out fewer than ", facts.trainingRecords));
  }
  uint64_t records = facts.trainingRecords - kj::min(data.heldOut, facts.trainingRecords);
  // The largest number of workers that the job may have.
  uint most = experiment.cluster.seats();
  uint workers = most / data.readings(most);
  uint64_t images = uint64_t(workers) * data.batchSize;
  if (records > 0 && images > records) {
    bool together = data.part == io::TrainingPart::SPLIT;
    bool wouldFit = images <= facts.trainingRecords;  // if no records were held out
    diagnostics.error(wouldFit ? data.heldOutSpan : data.batchSizeSpan,
        kj::str("a step ", together ? "" : "of each worker ", "takes ", images, " images",
            together ? kj::str(" (", counted(workers, "worker"), " × ", data.batchSize, ")")
                     : kj::str(),
            ", but ", data.dataset->name, " has ", counted(records, "training record"),
            data.heldOut > 0 ? " that are not held out" : ""),
        wouldFit ? kj::str("hold out at most ", facts.trainingRecords - images,
                       ", or make data.batch_size smaller")
        : together
            ? kj::str("make data.batch_size or ",
                  most > experiment.cluster.workers ? "cluster.elastic.max" : "cluster.workers",
                  " smaller")
            : kj::str("make data.batch_size smaller"));
  }
  if (experiment.log.topK > 0 && experiment.log.topK >= facts.classes) {
    diagnostics.error(experiment.log.topKSpan,
        kj::str("`top_k` is ", experiment.log.topK, ", but ", data.dataset->name, " has ",
            facts.classes, " classes, so every image would count as correct"),
        "make it smaller, or leave it out");
  }
  KJ_IF_MAYBE(lookahead, experiment.train.rules.lookahead) {
    if (images > 0 && images <= records) {
      uint64_t length = io::Stream::passLength(data, records, experiment.cluster.workers);
      lookahead->check(runLengthOf(experiment, length), diagnostics);
    }
  }
  build(experiment, facts, diagnostics);
}

nn::Graph graphOf(const Experiment& experiment, const io::DatasetFacts& facts) {
  configs::Diagnostics diagnostics;
  auto graph = build(experiment, facts, diagnostics);
  KJ_REQUIRE(diagnostics.count() == 0, "not checked before", diagnostics.format(experiment.name));
  if (facts.classNames.size() == 0) return graph;
  // The user's list may name more classes than the labels have, or fewer.
  graph.classNames = kj::heapArray<kj::String>(graph.classes);
  for (size_t label = 0; label < kj::min(graph.classes, facts.classNames.size()); ++label) {
    graph.classNames[label] = kj::str(facts.classNames[label]);
  }
  return graph;
}

}  // namespace runner
