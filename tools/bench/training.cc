#include "tools/bench/training.h"

#include <kj/debug.h>
#include <math.h>

#include "configs/language/failure.h"
#include "configs/language/random.h"
#include "nn/loops/floats.h"
#include "nn/network/initializer.h"
#include "nn/reference/reference.h"
#include "runner/text/numbers.h"
#include "tools/bench/check.h"
#include "tools/bench/ops.h"

namespace tools {
namespace {

// How many images the reference implementation computes too. Its loops are naive, at about 1.2
// GFLOP/s.
constexpr uint CHECKED_IMAGES = 2;
constexpr double CHECKED_FLOPS = 1.2e9;
// Of an assumed data set.
constexpr uint ASSUMED_RECORDS = 1000000;
// A synthetic image of bytes stands for pixels from -4 to almost 4.
constexpr float PIXEL_ZERO = 128;
constexpr float PIXEL_UNIT = 1 / 32.0f;

double forwardFlops(const nn::Graph& graph) {
  double flops = 0;
  for (auto& node: flopsOf(graph)) flops += node.forward;
  return flops;
}

runner::ModelFacts factsOf(const runner::Experiment& experiment, AssumedImages assumed) {
  if (assumed.classes == 0) return runner::ModelFacts(experiment);
  uint side = experiment.data.augment.crop;
  if (side == 0) configs::fail("--classes needs data.augment.crop: the size of the images");
  io::DatasetFacts facts = {
      {assumed.colours, side, side}, assumed.classes, ASSUMED_RECORDS, ASSUMED_RECORDS};
  return runner::ModelFacts(experiment, kj::mv(facts));
}

}  // namespace

void TrainingCommand::addArguments(
    kj::MainBuilder& builder, kj::StringPtr stepsDoc, kj::StringPtr dataDoc) {
  ExperimentCommand::addArguments(builder, stepsDoc);
  builder.addOption({"data"}, flagSetter(data), dataDoc)
      .addOptionWithArg({"classes"}, numberSetter(assumed.classes), "N",
          "works without the data set: images are as large as the crop, in N classes")
      .addOptionWithArg(
          {"colours"}, numberSetter(assumed.colours), "N", "channels of these images (default: 3)");
}

runner::LoadedExperiment TrainingCommand::load() {
  if (data && assumed.classes > 0) {
    commandLine.exitError("--data reads the data set, but --classes works without it");
  }
  return ExperimentCommand::load();
}

OwnBatch::OwnBatch(uint64_t number, uint images, size_t imageFloats)
    : pixels(kj::heapArray<float>(images * imageFloats)),
      labels(kj::heapArray<int32_t>(images)),
      draws(kj::heapArray<uint64_t>(images)),
      batch{.step = number, .pixels = pixels, .labels = labels, .images = images, .draws = draws} {}

OwnBatch::OwnBatch(const nn::Graph& graph, uint images, uint number)
    : OwnBatch(number, images, graph.inputShape().size()) {
  configs::Random random(1 + number, configs::Purpose::INITIAL_VALUES);
  for (auto& pixel: pixels) pixel = random.normal();
  for (auto& label: labels) label = random.below(graph.classes);
  for (auto& draw: draws) draw = random.next();
}

OwnBatch::OwnBatch(const io::Batch& from, uint distinct, uint images)
    : OwnBatch(from.step, images, from.pixels.size() / from.images) {
  size_t imageFloats = from.pixels.size() / from.images;
  for (uint i = 0; i < images; i++) {
    uint j = i % distinct;
    nn::copy(from.pixels.slice(j * imageFloats, (j + 1) * imageFloats),
        pixels.slice(i * imageFloats, (i + 1) * imageFloats));
    labels[i] = from.labels[j];
    draws[i] = from.draws[j];
  }
}

kj::Array<kj::byte> OwnBatch::roundToBytes() {
  auto bytes = kj::heapArray<kj::byte>(pixels.size());
  for (size_t i = 0; i < pixels.size(); i++) {
    float nearest = roundf(pixels[i] / PIXEL_UNIT) + PIXEL_ZERO;
    bytes[i] = kj::byte(kj::max(0.0f, kj::min(255.0f, nearest)));
    pixels[i] = (bytes[i] - PIXEL_ZERO) * PIXEL_UNIT;
  }
  return bytes;
}

SyntheticBatch::SyntheticBatch(nn::Program& program, const nn::Graph& graph, uint images)
    : program(program), batch(graph, images), rows(kj::heapArray<nn::RawRow>(images)) {
  auto shape = graph.inputShape();
  auto means = kj::heapArray<float>(shape.channels), factors = kj::heapArray<float>(shape.channels);
  for (float& mean: means) mean = PIXEL_ZERO;
  for (float& factor: factors) factor = PIXEL_UNIT;
  raw = program.takeRaw({.channels = shape.channels,
                            .height = shape.height,
                            .width = shape.width,
                            .means = means.begin(),
                            .factors = factors.begin()},
      images);
  KJ_IF_MAYBE(own, raw) own->keep(0, batch.roundToBytes());
}

void SyntheticBatch::setFirst(uint distinct) {
  repeated = kj::heap<OwnBatch>(batch.get(), distinct, rows.size());
  set(*KJ_ASSERT_NONNULL(repeated), distinct);
}

void SyntheticBatch::set(const OwnBatch& from, uint distinct) {
  auto& all = from.get();
  KJ_IF_MAYBE(own, raw) {
    for (uint n = 0; n < rows.size(); n++) rows[n] = {n % distinct, 0, 0, 0};
    own->setBatch({.rows = rows, .labels = all.labels, .draws = all.draws});
  } else {
    program.setBatch(all.pixels, all.labels, all.draws);
  }
}

RecordBatches::RecordBatches(nn::Program& program, const runner::Experiment& experiment)
    : dataset(io::openDataset(experiment.data, io::unheard())),
      batches(program, *dataset, experiment.data, experiment.train.seed, 1, 0, 0) {}

void RecordBatches::set() {
  batches.readTraining();
  batches.set();
}

void trainingStep(nn::Program& program, rpc::KvStore& store, const nn::Graph& graph, uint64_t step,
    runner::VerbTimes& verbs) {
  auto& segments = graph.segments;
  runner::Stopwatch verb;
  for (uint s = 0; s < segments.size(); s++) {
    store.await(step, segments[s].parameters.begin, segments[s].parameters.end);
    verb.chargeTo(verbs.pull_s);
    program.forward(nn::Phase::TRAIN, s);
    verb.chargeTo(verbs.forward_s);
  }
  nn::backwardAll(program, segments.size(), [&](uint s) {
    verb.chargeTo(verbs.backward_s);
    store.push(step, segments[s].parameters.begin, segments[s].parameters.end);
    verb.chargeTo(verbs.push_s);
  });
  program.result();
}

Training::Training(
    const runner::Experiment& experiment, kj::Maybe<nn::Profile&> profile, AssumedImages assumed)
    : experiment(experiment),
      facts(factsOf(experiment, assumed)),
      placement(rpc::place(runner::storeKeys(experiment, facts.graph),
          experiment.kvstore.slice_bytes, 1, *experiment.kvstore.placement)),
      updater(experiment, facts),
      updates(updater.byValue()),
      program_(runner::programOf(experiment, facts.graph, profile)),
      store(rpc::newLocalStore(
          placement, rpc::Rounds(), updater, program_->parameters(), program_->gradients())) {
  // Weights that depend on the first images are made from synthetic images here. This does not
  // change the speed.
  bool needsImages = nn::imagesToInitialize(facts.graph) > 0;
  OwnBatch first(facts.graph, needsImages ? experiment.data.batchSize : 0);
  nn::initialize(facts.graph, experiment.model.initializer, experiment.train.seed,
      program_->parameters(), program_->statistics(), first.get().pixels);
  store->initialize();
}

kj::String Training::check(SyntheticBatch& batch) {
  auto& program = *program_;
  uint all = experiment.data.batchSize;
  uint images = all % 2 == 0 && 2 * forwardFlops(graph()) <= CHECKED_FLOPS ? 2 : 1;
  // The batch repeats the same few images. Batch norms then have the same statistics as the
  // reference's, and gradients are a multiple of the reference's. The program that is checked is
  // the one that is timed.
  OwnBatch few(batch.get(), images, images);
  auto reference = nn::REFERENCE.lower(graph(), {.batchSize = images});
  nn::copy(program.parameters(), reference->parameters());
  nn::copy(program.statistics(), reference->statistics());
  reference->setBatch(few.get().pixels, few.get().labels, few.get().draws);
  batch.setFirst(images);

  auto statistics = kj::heapArray<float>(program.statistics());
  auto tolerance = checkToleranceOf(experiment.train.precision);
  // Validation comes first, because training changes the moving statistics.
  for (auto phase: {nn::Phase::VALIDATE, nn::Phase::TRAIN}) {
    for (auto* each: {reference.get(), &program}) {
      for (uint s = 0; s < graph().segments.size(); s++) each->forward(phase, s);
    }
    requireSameLogits(program, *reference, tolerance.logits, phase);
  }
  nn::copy(statistics, program.statistics());
  kj::StringPtr what = "logits";
  KJ_IF_MAYBE(gradient, tolerance.gradient) {
    for (auto* each: {reference.get(), &program}) {
      nn::backwardAll(*each, graph().segments.size(), [](uint) {});
    }
    for (float& value: reference->gradients()) value *= float(all / images);
    requireSameGradients(graph(), program, *reference, *gradient);
    what = "logits and gradients";
  }
  return kj::str(
      what, " of ", runner::counted(images, "image"), " match the reference implementation");
}

void Training::step(runner::VerbTimes& verbs) {
  if (done == 0) {
    KJ_IF_MAYBE(rules, updates) trainer = program_->trainBy(*rules);
  }
  KJ_IF_MAYBE(own, trainer) {
    runner::Stopwatch verb;
    own->step(done);
    verb.chargeTo(verbs.forward_s);
  } else {
    trainingStep(*program_, *store, graph(), done, verbs);
  }
  done++;
}

void Training::awaitUpdate() {
  if (trainer == nullptr) store->await(done, 0, graph().parameters);
}

}  // namespace tools
