#include "runner/experiment/model_facts.h"

#include "io/batches/batcher.h"
#include "io/batches/stream.h"
#include "nn/cpu/cpu.h"
#include "nn/cpu/instruction_set.h"
#include "nn/device_group.h"
#include "runner/experiment/devices.h"
#include "runner/experiment/run_length.h"

namespace runner {

io::DatasetFacts datasetFacts(const io::DataConfig& config) {
  io::Progress unheard = io::unheard();
  return datasetFacts(config, unheard);
}

io::DatasetFacts datasetFacts(const io::DataConfig& config, io::Progress& progress) {
  KJ_IF_MAYBE(facts, io::factsOf(config)) return kj::mv(*facts);
  auto dataset = io::openDataset(config,
      [&](kj::StringPtr what, uint64_t done, uint64_t total) { progress(what, done, total); });
  // Images of any size give crops of one size.
  return {dataset->storedShape().orDefault(dataset->batchShape()), dataset->classes(),
      dataset->training().count(), dataset->validation().count(), dataset->leftOut(),
      dataset->classNames(), kj::heapArray(dataset->meanImage())};
}

void requireMachineFor(const Experiment& experiment, configs::Diagnostics& diagnostics) {
  if (!experiment.cluster.isHere()) return;
  bool usesCpu = false;
  for (auto& device: experiment.cluster.devices) {
    KJ_IF_MAYBE(why, whyNotHere(device)) {
      diagnostics.error(experiment.cluster.devicesSpan, kj::str("device `", device, "`: ", *why),
          "choose \"cpu\"");
    }
    usesCpu = usesCpu || targetOf(device).backend == &nn::CPU;
  }
  if (!usesCpu) return;
  auto require = [&]() { nn::requirePrecision(experiment.train.precision); };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(require)) {
    diagnostics.error(experiment.train.precisionSpan, e->getDescription());
  }
}

kj::Maybe<kj::StringPtr> whyBitsDiffer(const Experiment& experiment) {
  if (experiment.train.deterministic) return nullptr;
  if (!haveGpu(experiment.cluster.devices)) return nullptr;
  return "algorithms on GPUs are chosen by speed, so the bits may differ from run to run. Set "
         "train.deterministic = true to choose them by a fixed rule"_kj;
}

kj::StringPtr highestLevelOf(const Experiment& experiment) {
  auto precision = experiment.train.precision;
  bool mayBeBf16 = precision == nn::Precision::BF16 || precision == nn::Precision::AUTO;
  return mayBeBf16 ? "avx512_amx"_kj : "avx512"_kj;
}

void useInstructionSetOf(const Experiment& experiment) {
  bool usesCpu = false;
  for (auto& device: experiment.cluster.devices) usesCpu = usesCpu || !isGpu(device);
  if (!usesCpu) return;
  auto named = experiment.cluster.instructionSet;
  auto offered = nn::offeredInstructionSet();
  if (named == AUTO_INSTRUCTION_SET) named = nn::lowerLevel(offered, highestLevelOf(experiment));
  if (nn::canCompute(offered, named)) nn::useInstructionSet(named);
}

kj::Maybe<kj::StringPtr> precisionHint(const Experiment& experiment, const nn::Graph& graph) {
  if (experiment.train.precision != nn::Precision::FP32) return nullptr;
  if (!nn::hasAmx() || !experiment.cluster.isHere()) return nullptr;
  for (auto& device: experiment.cluster.devices) {
    if (isGpu(device)) return nullptr;
  }
  // LeNet has two, and only trains 1.1 times as fast. inception-bn-28-small has 19, and trains 3.0
  // times as fast, resnet-56 has 57, and trains 2.2 times as fast.
  constexpr uint CONVOLUTIONS_MIN = 3;
  uint convolutions = 0;
  for (auto& node: graph.nodes) convolutions += node.op.is<nn::Conv2d>() ? 1 : 0;
  if (convolutions < CONVOLUTIONS_MIN) return nullptr;
  return "hint: the processors have AMX. With train.precision = \"bf16\" or \"auto\", this network "
         "would probably train at least 1.5 times as fast"_kj;
}

ModelFacts::ModelFacts(const Experiment& experiment)
    : ModelFacts(experiment, datasetFacts(experiment.data)) {}

ModelFacts::ModelFacts(const Experiment& experiment, io::DatasetFacts facts)
    : trainingRecords(facts.trainingRecords - experiment.data.heldOut),
      passLength(
          io::Stream::passLength(experiment.data, trainingRecords, experiment.cluster.workers)),
      validationRecords(
          experiment.data.validatesOnHeldOut() ? experiment.data.heldOut : facts.validationRecords),
      imageShape(facts.shape),
      graph(graphOf(experiment, facts)),
      leftOut(kj::mv(facts.leftOut)),
      meanImage(kj::mv(facts.meanImage)) {}

uint64_t ModelFacts::steps(
    const Experiment& experiment, kj::Maybe<const io::Division&> division) const {
  return stepsOf(experiment, passLength, division);
}

uint ModelFacts::epochs(const Experiment& experiment) const {
  uint64_t all = steps(experiment);
  auto areEnough = [&](uint epochs) { return stepsIn(epochs, experiment, passLength) >= all; };
  uint enough = 1;
  while (!areEnough(enough)) enough *= 2;
  // A run with train.early_stop may have a bound of a billion epochs.
  uint tooFew = enough / 2;
  while (enough - tooFew > 1) {
    uint middle = tooFew + (enough - tooFew) / 2;
    (areEnough(middle) ? enough : tooFew) = middle;
  }
  return enough;
}

uint64_t ModelFacts::stepsUntilEndOf(
    uint epoch, const Experiment& experiment, kj::Maybe<const io::Division&> division) const {
  return kj::min(stepsIn(epoch, experiment, passLength, division), steps(experiment, division));
}

namespace {

nn::ProgramOptions optionsOf(const Experiment& experiment) {
  return {.batchSize = experiment.data.batchSize,
      .threads = experiment.cluster.threadsPerWorker,
      .precision = experiment.train.precision,
      .lossScale = float(experiment.train.lossScale),
      .deterministic = experiment.train.deterministic};
}

kj::Own<nn::Program> lowered(
    const Experiment& experiment, const nn::Graph& graph, nn::ProgramOptions options) {
  auto targets = KJ_MAP(device, experiment.cluster.devices) {
    return targetOf(device);
  };
  if (targets.size() > 1) return nn::newDeviceGroup(graph, targets, options);
  options.device = targets[0].device;
  return targets[0].backend->lower(graph, options);
}

}  // namespace

kj::Own<nn::Program> programOf(const Experiment& experiment, const nn::Graph& graph,
    kj::Maybe<nn::Profile&> profile, kj::ArrayPtr<float> gradients) {
  auto options = optionsOf(experiment);
  options.profile = profile;
  options.gradients = gradients;
  return lowered(experiment, graph, options);
}

kj::Own<nn::Program> validatingProgramOf(const Experiment& experiment, const nn::Graph& graph) {
  auto options = optionsOf(experiment);
  options.validatesOnly = true;
  return lowered(experiment, graph, options);
}

rpc::MessageLimits jobMessageLimits(const ModelFacts& facts) {
  constexpr uint64_t CELL_BYTES = 16;  // ConfusionCell in job.capnp
  auto& graph = facts.graph;
  uint64_t weights_bytes = (graph.parameters + graph.statisticsSize) * sizeof(float);
  uint64_t cells = kj::min(uint64_t(graph.classes) * graph.classes, facts.validationRecords);
  // At least a piece of a checkpoint.
  uint64_t most_bytes = kj::max(kj::max(weights_bytes, cells * CELL_BYTES), uint64_t(1 << 20));
  return {.message_bytes = most_bytes + 65536, .unanswered_bytes = 2 * most_bytes + (1 << 20)};
}

}  // namespace runner
