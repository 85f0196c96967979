#include "runner/inference/trained_model.h"

#include <sys/stat.h>

#include "configs/language/failure.h"
#include "nn/loops/floats.h"
#include "runner/experiment/devices.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/run_folder.h"
#include "runner/weights/weights_notes.h"

namespace runner {

namespace {

bool exists(kj::StringPtr path) {
  struct stat about;
  return ::stat(path.cStr(), &about) == 0;
}

// Reads an experiment from its text. Errors go to `loaded.errors`.
LoadedExperiment readText(
    kj::StringPtr name, kj::StringPtr text, kj::ArrayPtr<const kj::StringPtr> overrides) {
  configs::Diagnostics diagnostics;
  auto loaded = readExperiment(configs::parse(name, text, diagnostics, overrides), diagnostics);
  if (diagnostics.count() > 0) {
    loaded.experiment = nullptr;
    loaded.errors = diagnostics.format(name);
  }
  return loaded;
}

// Returns the run around a file of weights, if it is in the folder of one.
kj::Maybe<RunFolder> runAround(kj::StringPtr path) {
  auto folder = kj::str(".");
  KJ_IF_MAYBE(slash, path.findLast('/')) folder = kj::heapString(path.slice(0, *slash));
  RunFolder run{kj::mv(folder)};
  if (!exists(run.experiment())) return nullptr;
  return kj::mv(run);
}

kj::Array<float> meanImageOf(const TrainedModel& model, io::Progress& progress) {
  kj::Array<float> mean;
  auto read = [&]() {
    auto dataset = io::openDataset(model.experiment().data,
        [&](kj::StringPtr what, uint64_t done, uint64_t total) { progress(what, done, total); });
    mean = kj::heapArray(dataset->meanImage());
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) {
    configs::fail("the network of ", model.path,
        " needs the mean image of its training images. The file does not contain it, and it "
        "cannot be computed: ",
        e->getDescription());
  }
  return mean;
}

// Finishes a model whose experiment is read. The biases that one of `skip` names are 0.
void fill(TrainedModel& model, const WeightsFile& file, io::DatasetFacts facts,
    io::Progress& progress, kj::ArrayPtr<const kj::String> skip = nullptr) {
  auto& experiment = model.experiment();
  configs::Diagnostics misfits;
  auto batch = io::batchShapeOf(experiment.data.augment, facts.shape);
  auto built = nn::buildGraph(
      experiment.model, {batch.channels, batch.height, batch.width}, facts.classes, misfits);
  if (misfits.count() > 0) {
    configs::fail("the network of the experiment does not fit images of ", batch.channels, "×",
        batch.height, "×", batch.width, " in ", facts.classes,
        " classes: ", misfits.all()[0].message,
        ". Choose the data of the experiment with --set data.source=…, or ", "another experiment");
  }
  // A file may claim any network. Values of the file have two bytes or more, and some may be left
  // out.
  uint64_t needed = built.parameters + built.statisticsSize;
  if (needed > file.bytes.size()) {
    configs::fail("the weights ", file.path, " do not fit the network: it needs ", needed,
        " values, and ", file.bytes.size(),
        " bytes cannot hold them. Choose the experiment that has trained them");
  }
  model.path = kj::str(file.path);
  model.imageShape = facts.shape;
  model.graph = graphOf(experiment, facts);
  auto& graph = model.graph;
  model.parameters = nn::zeros(graph.parameters);
  model.statistics = nn::zeros(graph.statisticsSize);
  model.report = loadWeights(file, graph, skip, model.parameters, model.statistics);
  KJ_IF_MAYBE(why, model.report.whyIncomplete()) {
    configs::fail("the weights ", file.path, " do not fit the network: ", *why,
        ". Choose the experiment that has trained them");
  }
  for (auto& name: model.report.skipped) {
    if (name.endsWith("_bias")) continue;
    configs::fail("model.skip leaves out `", name,
        "`, without which the network computes nothing of use. Only biases may be left out here, "
        "because a layer without a bias computes the same as one with a bias of 0");
  }
  KJ_IF_MAYBE(digest, file.note("experiment_sha256")) model.digest = kj::str(*digest);
  KJ_IF_MAYBE(epoch, file.note("epoch")) model.epoch = kj::str(*epoch);
  if (experiment.data.augment.meanImage && model.meanImage.size() == 0) {
    model.meanImage = meanImageOf(model, progress);
  }
}

}  // namespace

// Throws if --set names other weights than those in `path`.
void requireOwnWeights(kj::StringPtr path, const Experiment& experiment) {
  KJ_IF_MAYBE(start, experiment.start) {
    for (auto span: {start->span, start->skipSpan}) {
      if (!configs::isOverride(span)) continue;
      configs::fail(path, " has its own weights. Name an experiment file (.toml) to use others ",
          "with --set model.weights=FILE");
    }
  }
}

TrainedModel openTrained(
    kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> overrides, io::Progress& progress) {
  TrainedModel model;
  if (path.endsWith(".toml")) {
    model.loaded = loadExperiment(path, overrides);
    if (model.loaded.experiment == nullptr) return model;
    auto& experiment = model.experiment();
    KJ_IF_MAYBE(start, experiment.start) {
      auto file = openWeights(start->path);
      fill(model, file, datasetFacts(experiment.data, progress), progress, start->skip);
      return model;
    }
    configs::fail(path,
        " names no trained weights: add model.weights, such as --set "
        "model.weights=weights.safetensors, or name the folder of a run");
  }
  auto file = openWeights(path);
  KJ_IF_MAYBE(notes, readNotes(file)) {
    model.loaded = readText(file.path, notes->resolved, overrides);
    if (model.loaded.experiment == nullptr) return model;
    requireOwnWeights(path, model.experiment());
    model.meanImage = kj::mv(notes->meanImage);
    fill(model, file, kj::mv(notes->facts), progress);
    return model;
  }
  KJ_IF_MAYBE(run, runAround(file.path)) {
    model.loaded = loadExperiment(run->experiment(), overrides);
    if (model.loaded.experiment == nullptr) return model;
    requireOwnWeights(path, model.experiment());
    fill(model, file, datasetFacts(model.experiment().data, progress), progress);
    return model;
  }
  configs::fail(file.path,
      " does not say which network it is for. Name an experiment file with that network instead: "
      "FILE.toml --set model.weights=",
      file.path);
}

io::Augmenter TrainedModel::augmenter() const {
  auto& config = experiment().data.augment;
  auto input = graph.inputShape();
  io::ImageShape batch{input.channels, input.height, input.width};
  return io::Augmenter(config, batch, config.resizes() ? batch : imageShape, meanImage);
}

kj::String TrainedModel::className(uint label) const {
  bool isNamed = label < graph.classNames.size() && graph.classNames[label].size() > 0;
  return isNamed ? kj::str(graph.classNames[label]) : kj::str(label);
}

kj::Maybe<kj::String> TrainedModel::computeHere() {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  auto& cluster = experiment.cluster;
  kj::Maybe<kj::String> sentence;
  for (auto& device: cluster.devices) {
    KJ_IF_MAYBE(why, whyNotHere(device)) {
      sentence = kj::str("the processor computes, because device `", device,
          "` cannot be used here: ", *why, ". Figures may differ in their last digits");
    }
  }
  if (sentence != nullptr) {
    cluster.devices = kj::arr(kj::str("cpu"));
    // No processor has the other precisions of GPUs.
    auto& precision = experiment.train.precision;
    bool isOfGpus = precision == nn::Precision::TF32 || precision == nn::Precision::FP16;
    if (isOfGpus) precision = nn::Precision::FP32;
  }
  useInstructionSetOf(experiment);
  return sentence;
}

size_t TrainedModel::batchOf(size_t images) const {
  constexpr size_t MOST = 64;  // more are no faster, and take memory
  return haveGpu(experiment().cluster.devices) ? MOST : kj::min(MOST, images);
}

kj::Own<nn::Program> TrainedModel::newProgram() const {
  auto program = validatingProgramOf(experiment(), graph);
  nn::copy(parameters, program->parameters());
  nn::copy(statistics, program->statistics());
  return program;
}

}  // namespace runner
