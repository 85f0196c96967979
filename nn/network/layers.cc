#include "nn/network/layers.h"

#include <kj/debug.h>

#include "configs/language/word.h"

namespace nn {
namespace {

// Limits of the language. They are far above any known network, and small enough that products fit
// in 64 bits.
constexpr configs::IntegerLimits CHANNELS = {.atLeast = 1, .atMost = 1 << 24};
constexpr configs::IntegerLimits SIDE = {.atLeast = 1, .atMost = 4096};
constexpr configs::IntegerLimits PAD = {.atLeast = 0, .atMost = 4096};
constexpr configs::IntegerLimits TIMES = {.atLeast = 1, .atMost = 1000};

constexpr configs::Word<Activation::Function> ACTIVATIONS[] = {
    {"relu", "max(x, 0).", Activation::RELU},
    {"tanh", "The hyperbolic tangent.", Activation::TANH},
    {"sigmoid", "1 / (1 + e^-x).", Activation::SIGMOID},
    {"elu", "x if x is above 0, otherwise e^x - 1 (Clevert et al. 2016, with alpha 1).",
        Activation::ELU},
    {"gelu",
        "x times the distribution function of the standard normal distribution at x (Hendrycks and "
        "Gimpel 2016).",
        Activation::GELU},
};

constexpr configs::Word<Pool::Function> POOLS[] = {
    {"max", "The largest value of the window.", Pool::MAX},
    {"average", "The sum of the window divided by kernel². Padding counts as zeros.",
        Pool::AVERAGE},
};

constexpr configs::Word<Pool::Rounding> ROUNDINGS[] = {
    {"floor", "As many as fit without reaching over the edge.", Pool::FLOOR},
    {"ceil", "As many as cover all pixels. The last window may reach over the edge.", Pool::CEIL},
};

constexpr configs::Word<BranchesLayer::Join> JOINS[] = {
    {"concat", "Puts the channels of the branches one after another, in the order written.",
        BranchesLayer::CONCAT},
    {"add", "Adds the branches element by element.", BranchesLayer::ADD},
};

// The keys that all kinds share, with the kind's own content.
template <typename Content>
Layer make(configs::Reader& reader, Content&& content) {
  Layer layer;
  layer.name = reader.text("name",
      "Name of the layer. The names of its parameters begin with it (`conv1_weight`). If empty: "
      "the name of the op and a number (`conv2d0`). A `repeat` takes no name.",
      "");
  layer.span = reader.span();
  layer.content = kj::mv(content);
  return layer;
}

// The key of layers that have a weight.
Layer withInit(configs::Reader& reader, Layer layer) {
  layer.initializer = reader.maybeKind("init",
      "Initial values of the layer's weights and bias. Default: `model.init`.", INITIALIZERS);
  return layer;
}

kj::Array<Layer> readList(configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc) {
  return reader.kinds<Layer>(key, doc, LAYERS);
}

void requireLayers(configs::Reader& reader, kj::StringPtr key, size_t count,
    kj::StringPtr what = "one layer", kj::StringPtr help = nullptr) {
  if (count == 0 && !reader.isManual()) {
    reader.error(key, kj::str("`", key, "` needs at least ", what), help);
  }
}

Layer readConv(configs::Reader& reader) {
  Conv2d conv;
  conv.filters = reader.integer("filters", "Number of output channels.", CHANNELS);
  conv.kernel = reader.integer("kernel", "Side of the square kernel, in pixels.", SIDE);
  conv.stride = reader.integer("stride", "Pixels from one window to the next.", SIDE, 1);
  conv.pad =
      reader.integer("pad", "Width of the border of zeros around the input, in pixels.", PAD, 0);
  conv.bias = reader.flag("bias", "Adds one learned number per filter.", true);
  return withInit(reader, make(reader, kj::mv(conv)));
}

Layer readDense(configs::Reader& reader) {
  Dense dense;
  dense.units = reader.integer("units", "Number of outputs. The input is flattened.", CHANNELS);
  dense.bias = reader.flag("bias", "Adds one learned number per unit.", true);
  return withInit(reader, make(reader, kj::mv(dense)));
}

Layer readBatchNorm(configs::Reader& reader) {
  BatchNormLayer norm;
  norm.epsilon = reader.maybeReal("epsilon",
      "Added to the variance. Default: as `model.conventions` says.", {.atLeast = 1e-30});
  norm.momentum = reader.maybeReal("momentum",
      "Share of the old moving statistics that each step keeps. Default: as `model.conventions` "
      "says.",
      {.atLeast = 0, .atMost = 1});
  norm.fixedGamma =
      reader.maybeFlag("fixed_gamma", "Keeps gamma at 1. Default: as `model.conventions` says.");
  return make(reader, kj::mv(norm));
}

Layer readActivation(configs::Reader& reader) {
  auto function = configs::chooseWord(
      reader, "function", "The function that is applied to each element.", ACTIVATIONS);
  return make(reader, Activation{function});
}

Layer readRelu(configs::Reader& reader) {
  return make(reader, Activation{Activation::RELU});
}
Layer readTanh(configs::Reader& reader) {
  return make(reader, Activation{Activation::TANH});
}
Layer readSigmoid(configs::Reader& reader) {
  return make(reader, Activation{Activation::SIGMOID});
}
Layer readElu(configs::Reader& reader) {
  return make(reader, Activation{Activation::ELU});
}
Layer readGelu(configs::Reader& reader) {
  return make(reader, Activation{Activation::GELU});
}

Layer readScale(configs::Reader& reader) {
  Scale scale;
  scale.factor =
      float(reader.real("factor", "The number by which each element is multiplied.", {}));
  return make(reader, kj::mv(scale));
}

Layer readDropout(configs::Reader& reader) {
  Dropout dropout;
  dropout.rate = reader.real("rate", "Share of the elements that each training step sets to 0.",
      {.atLeast = 0, .below = 1});
  return make(reader, kj::mv(dropout));
}

Layer readPool(configs::Reader& reader) {
  PoolLayer pool;
  pool.function = configs::chooseWord(reader, "function", "How a window becomes one value.", POOLS);
  bool isGlobal = reader.flag("global",
      "Uses one window over the whole input, which must be square. Cannot be combined with "
      "`kernel`, `stride` and `pad`.",
      false);
  auto refuseBesideGlobal = [&](kj::StringPtr key) {
    reader.error(key, kj::str("`", key, "` and `global` cannot both be given"),
        "leave one of them out", {"global"_kj});
  };
  auto kernel = reader.maybeInteger("kernel",
      kj::str("Side of the square window, in pixels. Required unless `global` is true. On GPUs, a "
              "window of `max` has at most ",
          Pool::GPU_KERNEL_MAX, " pixels per side."),
      SIDE);
  KJ_IF_MAYBE(side, kernel) {
    if (isGlobal) refuseBesideGlobal("kernel");
    pool.kernel = *side;
  } else {
    if (!isGlobal && !reader.isManual()) {
      reader.error("kernel", "a pool needs `kernel`",
          "write for example kernel = 2, or global = true for one window over the whole input",
          {"global"_kj});
    }
    pool.kernel = 0;
  }
  KJ_IF_MAYBE(stride, reader.maybeInteger("stride",
                          "Pixels from one window to the next. Default: the kernel's side, so that "
                          "windows do not overlap.",
                          SIDE)) {
    if (isGlobal) refuseBesideGlobal("stride");
    pool.stride = uint(*stride);
  }
  pool.pad = reader.integer(
      "pad", "Width of the border around the input that windows may cover, in pixels.", PAD, 0);
  // The experiment.toml of a run has the default, 0.
  if (isGlobal && pool.pad > 0) refuseBesideGlobal("pad");
  pool.rounding = configs::maybeChooseWord(reader, "rounding",
      "How many windows there are per row and column. Default: as `model.conventions` says.",
      ROUNDINGS);
  return make(reader, kj::mv(pool));
}

Layer readBranches(configs::Reader& reader) {
  BranchesLayer result;
  result.branches = reader.kindLists<Layer>("branches",
      "Lists of layers that all get the same input, written `[[…], […]]`. The output of an empty "
      "list is its input.",
      LAYERS);
  requireLayers(reader, "branches", result.branches.size(), "one list of layers",
      "write branches = [[{ kind = \"relu\" }], []]: each list begins with the same input");
  result.join = configs::chooseWord(
      reader, "join", "How the outputs of the branches are combined.", JOINS, "concat");
  return make(reader, kj::mv(result));
}

Layer readResidual(configs::Reader& reader) {
  ResidualLayer result;
  result.layers = readList(reader, "layers", "The layers whose output is added to the shortcut.");
  requireLayers(reader, "layers", result.layers.size());
  result.shortcut = readList(
      reader, "shortcut", "The layers on the shortcut. Default: the input is added unchanged.");
  return make(reader, kj::mv(result));
}

Layer readRepeat(configs::Reader& reader) {
  RepeatLayer result;
  result.times = reader.integer("times", "Number of copies, in sequence.", TIMES);
  result.layers = readList(reader, "layers", "The layers of one copy.");
  requireLayers(reader, "layers", result.layers.size());
  uint64_t nodes = result.times * unrolled(result.layers);
  if (nodes > UNROLLED_MAX) {
    // If a `repeat` inside is too large by itself, so is this one.
    reader.error("times",
        kj::str(
            "`repeat` unrolls to ", nodes, " layers, and at most ", UNROLLED_MAX, " are allowed"),
        "make `times` smaller, here or in a `repeat` inside", {"layers"_kj});
    result.times = 1;
  }
  auto layer = make(reader, kj::mv(result));
  // The copies get the names of their layers.
  if (layer.name.size() > 0) {
    reader.error(
        "name", "a `repeat` has no use for a name", "name the layers in it, or leave `name` out");
  }
  return layer;
}

constexpr configs::Kind<Layer> ROWS[] = {
    {"conv",
        "Convolution. Height and width become (side + 2·pad - kernel) / stride + 1, rounded down.",
        readConv},
    {"dense", "Fully connected layer: every output depends on every input.", readDense},
    {"batch_norm", "Batch normalisation (Ioffe and Szegedy 2015), for each channel separately.",
        readBatchNorm},
    {"activation", "Applies a function to each element.", readActivation},
    {"relu", "The same as `activation` with `function = \"relu\"`.", readRelu},
    {"tanh", "The same as `activation` with `function = \"tanh\"`.", readTanh},
    {"sigmoid", "The same as `activation` with `function = \"sigmoid\"`.", readSigmoid},
    {"elu", "The same as `activation` with `function = \"elu\"`.", readElu},
    {"gelu", "The same as `activation` with `function = \"gelu\"`.", readGelu},
    {"scale", "Multiplies each element by a constant.", readScale},
    {"dropout",
        "In training, sets random elements to 0 and multiplies the others by 1 / (1 - rate). "
        "Validation keeps all elements (Srivastava et al. 2014). Which elements are chosen depends "
        "only on the seed, the pass, the record and the layer.",
        readDropout},
    {"pool", "Takes the maximum or the average of each window.", readPool},
    {"branches", "Several lists of layers with the same input.", readBranches},
    {"residual",
        "Layers with a shortcut around them: the output is the sum of both (He et al. 2015).",
        readResidual},
    {"repeat", "Several copies of the same layers, in sequence.", readRepeat},
};

// Unrolls layers. `suffix` distinguishes copies under `repeat` ("_2").
class Unrolling {
public:
  Unrolling(GraphBuilder& builder, const Conventions& conventions)
      : builder(builder), conventions(conventions) {}

  NodeId addAll(kj::ArrayPtr<const Layer> layers, NodeId input, kj::StringPtr suffix) {
    for (auto& layer: layers) input = add(layer, input, suffix);
    return input;
  }

private:
  GraphBuilder& builder;
  const Conventions& conventions;

  // `kind` is the name of the layer's kind, if the op has a different name.
  NodeId addOp(const Layer& layer, Op op, kj::ArrayPtr<const NodeId> inputs, kj::StringPtr suffix,
      kj::StringPtr kind = nullptr) {
    auto name = layer.name.size() == 0 ? kj::str() : kj::str(layer.name, suffix);
    return builder.add(name, kj::mv(op), inputs, layer.span, layer.initializer, kind);
  }

  Op resolve(const BatchNormLayer& norm) {
    return BatchNorm{.epsilon = float(norm.epsilon.orDefault(conventions.batchNormEpsilon)),
        .momentum = float(norm.momentum.orDefault(conventions.batchNormMomentum)),
        .fixedGamma = norm.fixedGamma.orDefault(conventions.fixedGamma),
        .movingMeanStart = conventions.movingMeanStart,
        .movingVarianceStart = conventions.movingVarianceStart};
  }

  Op resolve(const PoolLayer& pool, Shape x) {
    // The larger side: on an input that is not square the kernel does not fit, and that is
    // reported.
    uint kernel = pool.kernel > 0 ? pool.kernel : kj::max(x.height, x.width);
    return Pool{.function = pool.function,
        .kernel = kernel,
        .stride = pool.stride.orDefault(kernel),
        .pad = pool.pad,
        .rounding = pool.rounding.orDefault(conventions.poolRounding)};
  }

  NodeId add(const Layer& layer, NodeId input, kj::StringPtr suffix) {
    auto single = kj::arrayPtr(&input, 1);
    KJ_SWITCH_ONEOF(layer.content) {
      KJ_CASE_ONEOF(conv, Conv2d) return addOp(layer, conv, single, suffix);
      KJ_CASE_ONEOF(dense, Dense) return addOp(layer, dense, single, suffix);
      KJ_CASE_ONEOF(norm, BatchNormLayer) return addOp(layer, resolve(norm), single, suffix);
      KJ_CASE_ONEOF(activation, Activation) return addOp(layer, activation, single, suffix);
      KJ_CASE_ONEOF(scale, Scale) return addOp(layer, scale, single, suffix);
      KJ_CASE_ONEOF(dropout, Dropout) return addOp(layer, dropout, single, suffix);
      KJ_CASE_ONEOF(pool, PoolLayer) {
        return addOp(layer, resolve(pool, builder.shapeOf(input)), single, suffix);
      }
      KJ_CASE_ONEOF(branches, BranchesLayer) {
        auto ends = KJ_MAP(branch, branches.branches) {
          return addAll(branch, input, suffix);
        };
        if (branches.join == BranchesLayer::ADD) {
          return addOp(layer, Add(), ends, suffix, "branches");
        }
        return addOp(layer, Concat(), ends, suffix, "branches");
      }
      KJ_CASE_ONEOF(residual, ResidualLayer) {
        NodeId ends[] = {
            addAll(residual.layers, input, suffix), addAll(residual.shortcut, input, suffix)};
        return addOp(layer, Add(), ends, suffix, "residual");
      }
      KJ_CASE_ONEOF(repeat, RepeatLayer) {
        for (uint i = 1; i <= repeat.times; ++i) {
          input = addAll(repeat.layers, input, kj::str(suffix, "_", i));
        }
        return input;
      }
    }
    KJ_UNREACHABLE;
  }
};

}  // namespace

constinit const kj::ArrayPtr<const configs::Kind<Layer>> LAYERS = ROWS;

uint64_t unrolled(kj::ArrayPtr<const Layer> layers) {
  uint64_t nodes = 0;
  for (auto& layer: layers) {
    KJ_IF_MAYBE(branches, layer.content.tryGet<BranchesLayer>()) {
      for (auto& branch: branches->branches) nodes += unrolled(branch);
    }
    KJ_IF_MAYBE(residual, layer.content.tryGet<ResidualLayer>()) {
      nodes += unrolled(residual->layers) + unrolled(residual->shortcut);
    }
    KJ_IF_MAYBE(repeat, layer.content.tryGet<RepeatLayer>()) {
      nodes += repeat->times * unrolled(repeat->layers);
    } else {
      nodes++;
    }
  }
  return nodes;
}

NodeId addLayers(GraphBuilder& builder, kj::ArrayPtr<const Layer> layers, NodeId input,
    const Conventions& conventions) {
  return Unrolling(builder, conventions).addAll(layers, input, "");
}

}  // namespace nn
