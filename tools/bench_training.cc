#include "tools/bench_training.h"

#include <kj/debug.h>

#include "configs/language/failure.h"
#include "configs/language/random.h"
#include "nn/cpu/cpu.h"
#include "nn/floats.h"
#include "nn/initializer.h"
#include "nn/reference/reference.h"
#include "tools/bench_check.h"

namespace tools {
namespace {

// Images that the oracle computes too: its loops are naive, at about 1.2 GFLOP/s.
constexpr uint CHECKED_IMAGES = 2;
constexpr uint64_t CHECKED_FLOPS = 1200000000;
// Of a data set that is not there.
constexpr uint COLOURS = 3, ASSUMED_RECORDS = 1000000;

const rpc::Mode& modeWithoutServers() {
  for (auto& mode: rpc::MODES) {
    if (!mode.hasServers) return mode;
  }
  KJ_UNREACHABLE;
}

uint64_t forwardFlops(const nn::Graph& graph) {
  uint64_t flops = 0;
  for (auto& node: graph.nodes) {
    auto inputs = KJ_MAP(input, node.inputs) {
      return graph.nodes[input].shape;
    };
    flops += nn::forwardFlops(node.op, inputs);
  }
  return flops;
}

runner::ModelFacts factsOf(const runner::Experiment& experiment, uint classes) {
  if (classes == 0) return runner::ModelFacts(experiment);
  uint side = experiment.data.augment.crop;
  if (side == 0) configs::fail("--classes needs data.augment.crop: the size of the images");
  io::DatasetFacts facts = {{COLOURS, side, side}, classes, ASSUMED_RECORDS, ASSUMED_RECORDS};
  return runner::ModelFacts(experiment, facts);
}

}  // namespace

SyntheticBatch::SyntheticBatch(const nn::Graph& graph, uint images, uint number)
    : pixels(kj::heapArray<float>(images * graph.inputShape().size())),
      labels(kj::heapArray<int32_t>(images)),
      draws(kj::heapArray<uint64_t>(images)) {
  configs::Random random(1 + number, configs::Purpose::INITIAL_VALUES);
  for (auto& pixel: pixels) pixel = random.normal();
  for (auto& label: labels) label = random.below(graph.classes);
  for (auto& draw: draws) draw = random.next();
  batch = {.step = number, .pixels = pixels, .labels = labels, .images = images, .draws = draws};
}

Training::Training(
    const runner::Experiment& experiment, kj::Maybe<nn::Profile&> profile, uint classes)
    : experiment(experiment),
      facts(factsOf(experiment, classes)),
      placement(rpc::place(runner::storeKeys(experiment, facts.graph),
          experiment.kvstore.slice_bytes, 1, *experiment.kvstore.placement)),
      updater(experiment, facts),
      program(runner::programOf(experiment, facts.graph, profile)),
      store(rpc::newLocalStore(
          placement, modeWithoutServers(), updater, program->parameters(), program->gradients())) {
  // Weights that are made of the first images are made of synthetic ones: as fast, whatever they
  // are.
  bool needsImages = nn::imagesToInitialize(facts.graph) > 0;
  SyntheticBatch first(facts.graph, needsImages ? experiment.data.batchSize : 0);
  nn::initialize(facts.graph, experiment.model.initializer, experiment.train.seed,
      program->parameters(), program->statistics(), first.get().pixels);
  store->initialize();
}

kj::String Training::check(const io::Batch& batch) {
  uint images = kj::min(CHECKED_IMAGES, experiment.data.batchSize);
  if (images * forwardFlops(graph()) > CHECKED_FLOPS) images = 1;
  auto tolerance = checkToleranceOf(experiment.train.precision);
  auto oracle = nn::REFERENCE.lower(graph(), {.batchSize = images});
  auto lowered = nn::CPU.lower(graph(), {.batchSize = images,
                                            .threads = experiment.cluster.threadsPerWorker,
                                            .precision = experiment.train.precision});
  for (auto other: {oracle.get(), lowered.get()}) {
    nn::copy(program->parameters(), other->parameters());
    nn::copy(program->statistics(), other->statistics());
    other->setBatch(batch.pixels.slice(0, images * graph().inputShape().size()),
        batch.labels.slice(0, images), batch.draws.slice(0, images));
  }
  program->setBatch(batch.pixels, batch.labels, batch.draws);
  // Validation first, as training moves the statistics. Its rows do not see each other: so the
  // program itself is compared, of which the oracle needs no other rows than these.
  auto forward = [&](nn::Program& ofThis, nn::Phase phase) {
    for (uint s = 0; s < graph().segments.size(); s++) ofThis.forward(phase, s);
  };
  forward(*oracle, nn::Phase::VALIDATE);
  forward(*program, nn::Phase::VALIDATE);
  requireSameLogits(*program, *oracle, tolerance.logits, nn::Phase::VALIDATE);
  // In training a batch norm sees all rows: so that of a smaller batch.
  for (auto each: {oracle.get(), lowered.get()}) {
    forward(*each, nn::Phase::TRAIN);
    for (uint s = graph().segments.size(); s-- > 0;) each->backward(s);
  }
  requireSameLogits(*lowered, *oracle, tolerance.logits, nn::Phase::TRAIN);
  requireSameGradients(graph(), *lowered, *oracle, tolerance.gradient);
  return kj::str(
      "logits and gradients of ", runner::counted(images, "image"), " agree with the oracle");
}

nn::BatchResult Training::step(const io::Batch& batch, runner::VerbTimes& verbs) {
  auto& segments = graph().segments;
  runner::Stopwatch verb;
  program->setBatch(batch.pixels, batch.labels, batch.draws);
  verb.chargeTo(verbs.read_s);
  for (uint s = 0; s < segments.size(); s++) {
    store->await(done, segments[s].parameters.begin, segments[s].parameters.end);
    verb.chargeTo(verbs.pull_s);
    program->forward(nn::Phase::TRAIN, s);
    verb.chargeTo(verbs.forward_s);
  }
  for (uint s = segments.size(); s-- > 0;) {
    program->backward(s);
    verb.chargeTo(verbs.backward_s);
    store->push(done, segments[s].parameters.begin, segments[s].parameters.end);
    verb.chargeTo(verbs.push_s);
  }
  done++;
  return program->result();
}

}  // namespace tools
