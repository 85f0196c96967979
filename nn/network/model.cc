#include "nn/network/model.h"

#include <kj/debug.h>

#include "nn/network/layers.h"
#include "nn/network/networks.h"

namespace nn {

ModelConfig::ModelConfig(): conventions(&CONVENTIONS[0]) {}
ModelConfig::ModelConfig(ModelConfig&&) noexcept(false) = default;
ModelConfig& ModelConfig::operator=(ModelConfig&&) noexcept(false) = default;
ModelConfig::~ModelConfig() noexcept(false) {}

namespace {

// Reports that a model has both `network` and `layers`. If one comes from `--set` or from another
// file, it is unknown which of them is wrong.
void reportBoth(configs::Reader& reader) {
  constexpr kj::StringPtr BOTH = "`network` and `layers` cannot both be given"_kj;
  auto layers = reader.span("layers");
  if (layers.source == reader.span("network").source) {
    reader.error("network", BOTH, "leave one of them out");
  } else {
    reader.error("network", kj::str(BOTH, ", and `layers` is given at ", layers.toString()),
        "remove one of them where it is written: a file that extends another, or a --set, can "
        "replace a key, but not remove it");
  }
}

}  // namespace

ModelConfig ModelConfig::read(configs::Reader& reader) {
  ModelConfig config;
  bool isNamed = reader.has("network"), isWritten = reader.has("layers");
  if (isNamed && isWritten) {
    reportBoth(reader);
  } else if (!isNamed && !isWritten && !reader.isManual()) {
    reader.error("network", "a model needs `network` or `layers`");
  }
  if (isNamed || reader.isManual()) {
    auto& network =
        reader.choose("network", "A network by name. Required unless `layers` is given.", NETWORKS);
    config.network = kj::str(network.name);
    config.span = reader.span("network");
  }
  config.conventions = &reader.choose("conventions",
      "The system whose defaults are used for keys of layers and optimizers that the file leaves "
      "out.",
      CONVENTIONS, "mxnet");
  config.initializer = reader.kind("init",
      "Initial weights of the layers that have no key `init` themselves. Biases begin at 0, except "
      "with `torch`, and with `dirac` if its `base` is `torch`. Betas begin at 0, and gammas at 1.",
      INITIALIZERS, "uniform");
  if (config.initializer.kind == Initializer::WHITENING) {
    reader.error("init", "`whitening` cannot be the `init` of all layers",
        "write it as `init` of the first convolution");
  }
  if (isWritten || reader.isManual()) {
    auto layers = reader.kinds("layers",
        "The network layer by layer, as `[[model.layers]]`, in the order from the images to the "
        "output. The last layer must give one value per class. The loss is added after it.",
        LAYERS);
    if (isWritten && layers.size() == 0)
      reader.error("layers", "`layers` needs at least one layer");
    auto nodes = unrolled(layers);
    if (nodes > UNROLLED_MAX) {
      reader.error("layers",
          kj::str(
              "`layers` unroll to ", nodes, " layers, and at most ", UNROLLED_MAX, " are allowed"),
          "make the `times` of a `repeat` smaller");
      layers = nullptr;
    }
    config.network = kj::mv(layers);
    config.span = reader.span("layers");
  }
  return config;
}

namespace {

const Network& networkOf(kj::StringPtr name) {
  for (auto& network: NETWORKS) {
    if (network.name == name) return network;
  }
  KJ_FAIL_REQUIRE("no network of this name", name);
}

// Reports that images do not fit a network by name, if `misfits` of its layers say so. The file
// does not show these layers, so one error is enough.
void reportMisfit(const Network& network, Shape input, const configs::Diagnostics& misfits,
    configs::Span span, configs::Diagnostics& diagnostics) {
  if (network.channels != 0 && network.channels != input.channels) {
    diagnostics.error(span,
        kj::str("network `", network.name, "` is for images of ", network.channels,
            " channels, and the data set's have ", input.channels),
        "choose a data set with such images, or another network");
  } else if (misfits.count() > 0) {
    diagnostics.error(span,
        kj::str("network `", network.name, "` does not fit images of ", input.height, "×",
            input.width, ": ", misfits.all()[0].message),
        "choose images of another size (data.resize_short_side, data.augment.crop), or another "
        "network");
  }
}

}  // namespace

Graph buildGraph(const ModelConfig& config, Shape input, uint classes,
    configs::Diagnostics& diagnostics, SoftmaxCrossEntropy loss) {
  kj::Array<Layer> named;
  kj::ArrayPtr<const Layer> layers;
  kj::Maybe<const Network&> network;  // by name
  KJ_SWITCH_ONEOF(config.network) {
    KJ_CASE_ONEOF(name, kj::String) {
      auto& row = networkOf(name);
      network = row;
      layers = named = row.layers(classes, config.span);
    }
    KJ_CASE_ONEOF(written, kj::Array<Layer>) layers = written;
  }
  configs::Diagnostics misfits;
  GraphBuilder builder(input, misfits);
  NodeId logits = addLayers(builder, layers, 0, *config.conventions);
  auto span = layers.size() > 0 ? layers.back().span : config.span;

  Shape shape = builder.shapeOf(logits);
  if (misfits.count() == 0 && shape.height == 1 && shape.width == 1 && shape.channels != classes) {
    misfits.error(span, kj::str("the last layer gives ", shape.channels,
                            " values, but the data set has ", classes, " classes"));
  }
  Graph graph = builder.finish(logits, span, loss);
  KJ_IF_MAYBE(n, network) {
    reportMisfit(*n, input, misfits, config.span, diagnostics);
  } else {
    diagnostics.addNew(misfits);
  }
  graph.fanOutHasKernelArea = config.conventions->fanOutHasKernelArea;
  if (!config.conventions->decayOnAllArrays) {
    for (auto& key: graph.keys) {
      if (key.role == Key::BIAS || key.role == Key::BETA) key.decayFactor = 0;
    }
  }
  return graph;
}

}  // namespace nn
