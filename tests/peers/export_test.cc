// Exported networks in onnxruntime and PyTorch, beside our own logits.
#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmath>

#include "configs/language/document.h"
#include "configs/language/random.h"
#include "io/datasets/datasets.h"
#include "io/images/crop_reader.h"
#include "io/images/fitted_image.h"
#include "io/testing/scratch.h"
#include "nn/cpu/cpu.h"
#include "nn/network/fold_batch_norms.h"
#include "nn/network/model.h"
#include "nn/network/networks.h"
#include "runner/export/onnx_model.h"
#include "runner/export/torch_module.h"
#include "runner/system/files.h"
#include "tests/command.h"
#include "tests/ops/cases.h"
#include "tests/peers/torch.h"
#include "tests/run.h"
#include "tests/skip.h"
#include "tests/text.h"
#include "tools/bench/process.h"

namespace tests {
namespace {

constexpr int NO_ONNX = 77;
constexpr uint SECONDS = 900;
// The tolerance of a logit, relative to the largest one. Other orders of addition cause errors of
// up to 3e-6.
constexpr double TOLERANCE = 2e-5;

void write(kj::StringPtr path, kj::ArrayPtr<const kj::byte> bytes) {
  runner::writeWhole(path, kj::arrayPtr(&bytes, 1));
}

// A network with values as in the middle of training.
struct Trained {
  nn::Graph graph;
  kj::Array<float> parameters;
  kj::Array<float> statistics;

  explicit Trained(nn::Graph&& built)
      : graph(kj::mv(built)),
        parameters(kj::heapArray<float>(graph.parameters)),
        statistics(kj::heapArray<float>(graph.statisticsSize)) {
    configs::Random random(1, configs::Purpose::INITIAL_VALUES);
    for (auto& key: graph.keys) {
      double scale = key.role == nn::Key::WEIGHT ? 1 / std::sqrt(double(key.cols)) : 0.2;
      double mean = key.role == nn::Key::GAMMA ? 1 : 0;
      for (float& value: parameters.slice(key.offset, key.offset + key.size)) {
        value = float(mean + scale * random.normal());
      }
    }
    for (auto& statistic: graph.statistics) {
      bool isMean = statistic.initialValue == 0;
      for (float& value: statistics.slice(statistic.offset, statistic.offset + statistic.size)) {
        value = float(isMean ? 0.1 * random.normal() : 0.5 + random.uniform());
      }
    }
  }

  kj::Array<float> logits(kj::ArrayPtr<const float> images) const {
    uint rows = images.size() / graph.inputShape().size();
    auto program = nn::CPU.lower(graph, {.batchSize = rows, .threads = 2});
    memcpy(program->parameters().begin(), parameters.begin(), parameters.asBytes().size());
    memcpy(program->statistics().begin(), statistics.begin(), statistics.asBytes().size());
    auto labels = kj::heapArray<int32_t>(rows);
    for (auto& label: labels) label = 0;
    program->setBatch(images, labels, nullptr);
    step(graph, *program, nn::Phase::VALIDATE);
    return kj::heapArray<float>(program->logits());
  }
};

// A folder for check_export.py.
class CaseFolder {
public:
  CaseFolder(kj::StringPtr name, const Trained& network, const runner::Preprocessing& steps,
      kj::ArrayPtr<const float> images, kj::ArrayPtr<const float> pixels)
      : path(newFolder()), network(network), steps(steps) {
    auto shape = network.graph.inputShape();
    auto stored = steps.images;
    write("images.f32", images.asBytes());
    write("pixels.f32", pixels.asBytes());
    write("logits.f32", network.logits(images).asBytes());
    write("case.json",
        kj::str("{\"name\":\"", name, "\",\"shape\":[", shape.channels, ",", shape.height, ",",
            shape.width, "],\"classes\":", network.graph.classes, ",\"stored\":[", stored.channels,
            ",", stored.height, ",", stored.width, "]}")
            .asBytes());
    add("network", {network.graph, network.parameters, network.statistics, "12ab"});
    auto folded = nn::foldBatchNorms(network.graph, network.parameters, network.statistics);
    add("folded", {folded.graph, folded.parameters, folded.statistics, ""});
  }

  void write(kj::StringPtr name, kj::ArrayPtr<const kj::byte> bytes) const {
    tests::write(kj::str(path, "/", name), bytes);
  }
  // Adds a model with options.
  void addOnnx(kj::StringPtr name, runner::OnnxOptions options) const {
    write(kj::str(name, ".onnx"),
        onnxModel({network.graph, network.parameters, network.statistics, ""}, steps, options));
  }

  const kj::String path;

private:
  const Trained& network;
  const runner::Preprocessing& steps;

  void add(kj::StringPtr name, const runner::ExportedNetwork& exported) const {
    write(kj::str(name, ".onnx"), onnxModel(exported, steps, {}));
    write(kj::str(name, ".py"), torchScript(exported, steps).asBytes());
    write(kj::str(name, ".safetensors"), torchWeights(exported, steps));
  }
};

// The figures of one folder.
struct Checked {
  kj::String line;

  double number(kj::StringPtr key) const {
    return KJ_REQUIRE_NONNULL(tools::numberIn(line, key), key, line);
  }
  void checkLogits(std::initializer_list<kj::StringPtr> ways) const {
    INFO(line);
    for (auto way: ways) {
      CAPTURE(way);
      CHECK(number(way) <= TOLERANCE * number("largest_logit"));
    }
  }
};

// Runs check_export.py over all folders. Null if a package is missing.
kj::Maybe<kj::Array<Checked>> check(
    kj::StringPtr python, kj::ArrayPtr<const kj::Own<CaseFolder>> folders) {
  kj::Vector<kj::StringPtr> words;
  words.add(python);
  words.add("tests/peers/check_export.py"_kj);
  for (auto& folder: folders) words.add(folder->path);
  auto ended = Command(words).wait(SECONDS);
  if (ended.exitCode == NO_ONNX) return nullptr;
  INFO(ended.errors);
  REQUIRE(ended.exitCode == 0);
  MESSAGE(ended.output);
  return KJ_MAP(line, linesOf(ended.output)) {
    return Checked{kj::mv(line)};
  };
}

constexpr char NO_PACKAGES[] =
    "no Python with PyTorch, onnx and onnxruntime (RUNNER_PYTHON names one)";

TEST_CASE("every op has the same result in onnxruntime and PyTorch, also with folded batch norms") {
  auto python = torchPython();
  if (python == "") SKIP_CASE(NO_TORCH);
  runner::Preprocessing steps{};
  kj::Vector<kj::Own<CaseFolder>> folders;
  for (auto& c: CASES) {
    auto built = build(c);
    auto batch = draw(c, 1);
    Trained network(kj::mv(built.graph));
    folders.add(kj::heap<CaseFolder>(c.name, network, steps, batch.pixels, batch.pixels));
  }
  KJ_IF_MAYBE(all, check(python, folders)) {
    REQUIRE(all->size() == CASES.size());
    for (auto& each: *all) {
      each.checkLogits({"onnx_network", "onnx_folded", "torch_network", "torch_folded"});
    }
  } else {
    SKIP_CASE(NO_PACKAGES);
  }
}

nn::Graph graphOf(kj::StringPtr network, io::ImageShape shape, uint classes) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", kj::str("network = \"", network, "\""), diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto config = configs::readDocument(*document, reading, nn::ModelConfig::read);
  auto graph =
      nn::buildGraph(config, {shape.channels, shape.height, shape.width}, classes, diagnostics);
  KJ_REQUIRE(diagnostics.count() == 0, diagnostics.format("x.toml"));
  return graph;
}

// Validation images of a data set: as a batch has them, as grey levels after crop and resize, and
// as the data set has them.
struct RealImages {
  io::ImageShape shape;
  runner::Preprocessing steps;
  kj::Array<float> images, pixels;
  kj::Vector<kj::Array<kj::byte>> stored;
  io::Encoding encoding;

  // Files of the user, for a network that was trained on images of shape `stored`.
  RealImages(const io::DataConfig& config, io::ImageShape stored,
      kj::ArrayPtr<const kj::Array<kj::byte>> files)
      : encoding(io::Encoding::JPEG) {
    shape = io::batchShapeOf(config.augment, stored);
    io::Augmenter augmenter(config.augment, shape, stored, nullptr);
    steps = runner::preprocessingOf(config, augmenter);
    io::ImageFitter fitter(config, stored, augmenter);
    io::CropReader reader(augmenter);
    images = kj::heapArray<float>(files.size() * shape.size());
    for (auto i: kj::indices(files)) {
      auto fit = fitter.fit(files[i]);
      io::Record record{0, 0, fit.encoding, fit.shape, fit.bytes};
      reader.apply(record, augmenter.centre(fit.shape),
          images.slice(i * shape.size(), (i + 1) * shape.size()));
      this->stored.add(kj::heapArray<kj::byte>(files[i]));
    }
    pixels = kj::heapArray<float>(images.asPtr());  // nothing is subtracted
  }

  // The first `count` images of validation, or of training if there are fewer for validation.
  RealImages(io::DataConfig& config, uint count) {
    auto dataset = io::openDataset(config, io::unheard());
    shape = dataset->batchShape();
    auto stored = dataset->storedShape().orDefault({0, 0, 0});
    io::Augmenter augmenter(config.augment, shape, stored, dataset->meanImage());
    steps = runner::preprocessingOf(config, augmenter);
    io::AugmentConfig bare;
    bare.crop = config.augment.crop;
    bare.pad = config.augment.pad;
    bare.padMode = config.augment.padMode;
    bare.padValue = config.augment.padValue;
    bare.areaMin = config.augment.areaMin;
    bare.areaMax = config.augment.areaMax;
    bare.aspectMin = config.augment.aspectMin;
    bare.aspectMax = config.augment.aspectMax;
    bare.centreCrop = config.augment.centreCrop;
    io::Augmenter withoutMean(bare, shape, stored, nullptr);
    io::CropReader reader(augmenter), greyLevels(withoutMean);
    images = kj::heapArray<float>(count * shape.size());
    pixels = kj::heapArray<float>(count * shape.size());
    auto& validation = dataset->validation();
    auto& db = validation.count() >= count ? validation : dataset->training();
    auto records = io::RecordReader::open(db);
    for (uint i = 0; i < count; ++i) {
      auto record = records->read(i);
      auto at = [&](kj::Array<float>& all) {
        return all.slice(i * shape.size(), (i + 1) * shape.size());
      };
      reader.apply(record, augmenter.centre(record.shape), at(images));
      greyLevels.apply(record, withoutMean.centre(record.shape), at(pixels));
      encoding = record.encoding;
      if (config.resizeShortSide == 0) this->stored.add(kj::heapArray(record.bytes));
    }
  }
};

// Exports `name` in every way, for these images.
kj::Own<CaseFolder> exportAll(kj::StringPtr name, const RealImages& real, uint classes) {
  Trained network(graphOf(name, real.shape, classes));
  auto folder = kj::heap<CaseFolder>(name, network, real.steps, real.images, real.pixels);
  folder->addOnnx("pixels", {.withPreprocessing = true});
  folder->addOnnx("probabilities", {.probabilities = true});
  if (real.encoding == io::Encoding::RAW) {
    kj::Vector<kj::byte> all;
    for (auto& each: real.stored) all.addAll(each);
    folder->write("stored.u8", all);
  } else {
    for (auto i: kj::indices(real.stored)) folder->write(kj::str(i, ".jpg"), real.stored[i]);
  }
  return folder;
}

void checkAll(const Checked& each) {
  each.checkLogits({"onnx_network", "onnx_folded", "onnx_pixels", "torch_network", "torch_folded"});
  CHECK(each.number("onnx_probabilities") <= TOLERANCE);
}

// Imports into a folder of this test program.
void setCache() {
  static auto folder = newFolder();
  ::setenv("RUNNER_CACHE", folder.cStr(), 1);
}

constexpr uint CLASSES = 10;

// Checks networks on the first `count` images of `config`. A macro, as those below, since SKIP_CASE
// leaves the case itself.
#define CHECK_NETWORKS(config, count, ...)                                      \
  do {                                                                          \
    setCache();                                                                 \
    RealImages real(config, count);                                             \
    kj::Vector<kj::Own<CaseFolder>> folders;                                    \
    for (auto name: {__VA_ARGS__}) folders.add(exportAll(name, real, CLASSES)); \
    KJ_IF_MAYBE(all, check(python, folders)) {                                  \
      REQUIRE(all->size() == folders.size());                                   \
      for (auto& each: *all) {                                                  \
        checkAll(each);                                                         \
        CHECK(each.number("preprocess") == 0);                                  \
      }                                                                         \
    } else {                                                                    \
      SKIP_CASE(NO_PACKAGES);                                                   \
    }                                                                           \
  } while (false)

TEST_CASE("networks for grey images have the same logits of Fashion-MNIST everywhere") {
  auto python = torchPython();
  if (python == "") SKIP_CASE(NO_TORCH);
  auto config = io::testConfig("fashion_mnist");
  config.augment.scale = 1 / 256.0;
  config.augment.mean = kj::arr(72.0);
  CHECK_NETWORKS(config, 256, "mlp", "lenet", "lenet-bn");
}

TEST_CASE("preprocess() resizes images as an import does, and pads them with a grey level") {
  auto python = torchPython();
  if (python == "") SKIP_CASE(NO_TORCH);
  setCache();
  auto config = io::testConfig("fashion_mnist");
  RealImages original(config, 256);
  config.resizeShortSide = 21;
  config.augment.pad = 4;
  config.augment.padMode = io::Padding::VALUE;
  config.augment.padValue = 100;
  config.augment.crop = 24;
  RealImages resized(config, 256);
  resized.stored = kj::mv(original.stored);
  auto folder = exportAll("mlp", resized, CLASSES);
  KJ_IF_MAYBE(all, check(python, kj::arrayPtr(&folder, 1))) {
    checkAll((*all)[0]);
    // Both round to whole grey levels. The last bit decides about one value in a hundred.
    CHECK((*all)[0].number("preprocess") <= 1);
    CHECK((*all)[0].number("preprocess_mean") < 0.01);
  } else {
    SKIP_CASE(NO_PACKAGES);
  }
}

TEST_CASE("preprocess() prepares photographs as `runner predict` does") {
  auto python = torchPython();
  if (python == "") SKIP_CASE(NO_TORCH);
  if (io::sharedDatasets("imagenet-sample/labels.tsv") == nullptr) {
    SKIP_CASE("RUNNER_DATASETS has no imagenet-sample");
  }
  setCache();
  auto source = io::testConfig("image_folder");
  source.augment.crop = 32;
  RealImages photographs(source, 16);
  kj::Vector<kj::Own<CaseFolder>> folders;
  auto add = [&](kj::StringPtr dataset, io::ImageShape stored, uint crop) {
    auto config = io::testConfig(dataset);
    config.augment.crop = crop;
    RealImages fitted(config, stored, photographs.stored);
    folders.add(exportAll("mlp", fitted, CLASSES));
  };
  add("cifar10", {3, 32, 32}, 28);
  add("fashion_mnist", {1, 28, 28}, 0);
  add("image_folder", {3, 40, 60}, 0);
  add("image_folder", {3, 0, 0}, 450);  // larger than most photographs
  KJ_IF_MAYBE(all, check(python, folders)) {
    REQUIRE(all->size() == folders.size());
    // In grey levels: both round, and the last bit decides about a few of them.
    for (auto& each: *all) CHECK(each.number("preprocess_mean") < 0.01);
  } else {
    SKIP_CASE(NO_PACKAGES);
  }
}

TEST_CASE("networks for whole images have the same logits of CIFAR-10 everywhere") {
  auto python = torchPython();
  if (python == "") SKIP_CASE(NO_TORCH);
  if (io::sharedDatasets("cifar10") == nullptr) SKIP_CASE("RUNNER_DATASETS has no cifar10");
  auto config = io::testConfig("cifar10");
  config.augment.mean = kj::arr(125.3, 123.0, 113.9);
  config.augment.deviation = kj::arr(63.0, 62.1, 66.7);
  CHECK_NETWORKS(config, 256, "airbench94", "resnet-20-v2", "resnet-32-v2");
}

TEST_CASE("networks for crops minus a mean image have the same logits of CIFAR-10 everywhere") {
  auto python = torchPython();
  if (python == "") SKIP_CASE(NO_TORCH);
  if (io::sharedDatasets("cifar10") == nullptr) SKIP_CASE("RUNNER_DATASETS has no cifar10");
  auto config = io::testConfig("cifar10");
  config.augment.crop = 28;
  config.augment.meanImage = true;
  config.augment.scale = 1 / 64.0;
  CHECK_NETWORKS(config, 256, "inception-bn-28-small", "resnet-20", "resnet-32");
}

// Checks deep networks on this many crops that reach over the edge.
#define CHECK_DEEP_NETWORKS(count)                                                             \
  do {                                                                                         \
    auto python = torchPython();                                                               \
    if (python == "") SKIP_CASE(NO_TORCH);                                                     \
    if (io::sharedDatasets("cifar10") == nullptr) SKIP_CASE("RUNNER_DATASETS has no cifar10"); \
    auto config = io::testConfig("cifar10");                                                   \
    config.augment.pad = 2;                                                                    \
    config.augment.crop = 34;                                                                  \
    config.augment.scale = 1 / 128.0;                                                          \
    CHECK_NETWORKS(config, count, "resnet-56", "resnet-110", "resnet-56-v2", "resnet-110-v2"); \
  } while (false)

TEST_CASE("deep networks have the same logits of 16 images everywhere") {
  CHECK_DEEP_NETWORKS(16);
}

TEST_CASE("deep networks have the same logits of 256 images everywhere") {
  CHECK_DEEP_NETWORKS(256);
}

// Checks a network on this many photographs.
#define CHECK_PHOTOGRAPHS(name, count)                                                     \
  do {                                                                                     \
    auto python = torchPython();                                                           \
    if (python == "") SKIP_CASE(NO_TORCH);                                                 \
    if (io::sharedDatasets("imagenet-sample/labels.tsv") == nullptr) {                     \
      SKIP_CASE("RUNNER_DATASETS has no imagenet-sample");                                 \
    }                                                                                      \
    setCache();                                                                            \
    auto config = io::testConfig("image_folder");                                          \
    config.augment.crop = 224;                                                             \
    config.augment.areaMin = 0.08;                                                         \
    config.augment.areaMax = 1;                                                            \
    config.augment.aspectMin = 0.75;                                                       \
    config.augment.aspectMax = 4 / 3.0;                                                    \
    config.augment.centreCrop = 0.875;                                                     \
    config.augment.mean = kj::arr(123.68, 116.779, 103.939);                               \
    config.augment.deviation = kj::arr(58.393, 57.12, 57.375);                             \
    RealImages real(config, count);                                                        \
    kj::Own<CaseFolder> folder = exportAll(name, real, 1000);                              \
    KJ_IF_MAYBE(all, check(python, kj::arrayPtr(&folder, 1))) {                            \
      checkAll((*all)[0]);                                                                 \
      /* The mean over a photograph of half a grey level: Pillow decodes it as a whole. */ \
      CHECK((*all)[0].number("preprocess_mean") < 0.01);                                   \
    } else {                                                                               \
      SKIP_CASE(NO_PACKAGES);                                                              \
    }                                                                                      \
  } while (false)

TEST_CASE("inception-bn has the same logits of 8 photographs everywhere") {
  CHECK_PHOTOGRAPHS("inception-bn", 8);
}

TEST_CASE("resnet-18 and resnet-50 have the same logits of 4 photographs everywhere") {
  CHECK_PHOTOGRAPHS("resnet-18", 4);
  CHECK_PHOTOGRAPHS("resnet-50", 4);
}

TEST_CASE("inception-bn has the same logits of 256 photographs everywhere") {
  CHECK_PHOTOGRAPHS("inception-bn", 256);
}

}  // namespace
}  // namespace tests
