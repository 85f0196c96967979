// Layers with weights, and batch norms.
#include <kj/debug.h>

#include "nn/cuda/passes.h"

namespace nn::cuda {

// ---- convolutions and dense layers

Passes::FilterLayer Passes::layerOf(UnitId u) const {
  auto& node = *units[u].node;
  auto keys = graph.keys.slice(node.keys.begin, node.keys.end);
  auto& x = input(u);
  FilterLayer layer{.weight = parameter(keys[0]), .weightGradient = gradient(keys[0])};
  if (keys.size() > 1 && biasForNorm(u) == nullptr) layer.bias = keys[1];
  uint outputs;
  if (node.op.is<Conv2d>()) {
    auto& op = node.op.get<Conv2d>();
    outputs = op.filters;
    layer.kernelHeight = layer.kernelWidth = op.kernel;
    layer.stride = op.stride;
    layer.pad = op.pad;
  } else {
    outputs = node.op.get<Dense>().units;
    layer.kernelHeight = x.plane.height;
    layer.kernelWidth = x.plane.width;
    layer.stride = 1;
    layer.pad = 0;
  }
  layer.filters = {.outputs = outputs,
      .inputs = x.channels,
      .plane = layer.kernelHeight * layer.kernelWidth,
      .paddedOutputs = padded(outputs, packOf(options.element)),
      .paddedInputs = padded(x.channels, packOf(options.element))};
  return layer;
}

kj::Maybe<const Key&> Passes::biasForNorm(UnitId u) const {
  auto& unit = units[u];
  auto& node = *unit.node;
  bool isLayer = node.op.is<Conv2d>() || node.op.is<Dense>();
  if (!isLayer || node.keys.size() < 2 || unit.activation != nullptr) return nullptr;
  if (unit.uses.size() != 1 || unit.uses[0].input != 0) return nullptr;
  if (!units[unit.uses[0].unit].is<BatchNorm>()) return nullptr;
  return graph.keys[node.keys.begin + 1];
}

ConvolutionProblem Passes::shapeOf(
    const FilterLayer& layer, const Tensor& x, const Tensor& y) const {
  auto extent = [](const Tensor& tensor) {
    return BatchLayout{tensor.width, tensor.plane.height, tensor.plane.width, tensor.stride};
  };
  return {.element = options.element,
      .output = y.element,
      .tensorFloats = options.tensorFloats,
      .images = draft.images,
      .x = extent(x),
      .y = extent(y),
      .kernelHeight = layer.kernelHeight,
      .kernelWidth = layer.kernelWidth,
      .stride = layer.stride,
      .pad = layer.pad,
      .deterministic = options.deterministic};
}

void Passes::forwardLayer(UnitId u) {
  auto& unit = units[u];
  auto& state = states[u];
  auto x = dense(converted(input(u), options.element));
  state.input = x;
  auto layer = layerOf(u);
  auto& filters = layer.filters;
  state.filters = draft.room(size_t(filters.paddedOutputs) * filters.plane * filters.paddedInputs *
                             bytesOf(options.element));
  draft.run(ImportFilters{options.element, layer.weight, draft.use(state.filters), filters});

  bool isBare = layer.bias == nullptr && unit.activation == nullptr;
  // The output of the library is padded like filters, even if its values stay floats.
  auto raw = draft.tensor(
      elementOf(u), filters.outputs, planeOf(unit.output->shape), packOf(options.element));
  draft.run(shapeOf(layer, x, raw), Direction::FORWARD, draft.use(x).data, draft.use(state.filters),
      draft.use(raw).data);
  if (isBare) {
    state.value = raw;
    return;
  }
  const float* bias = nullptr;
  KJ_IF_MAYBE(key, layer.bias) bias = parameter(*key);
  auto y = targets[u] == nullptr ? raw : place(u);
  state.value = y;
  draft.run(Activate{y.element, functionOf(unit), draft.use(raw), bias, draft.use(y)});
}

void Passes::backwardLayer(UnitId u) {
  auto& unit = units[u];
  auto& state = states[u];
  auto layer = layerOf(u);
  auto& filters = layer.filters;
  auto dy = slope(u);
  if (unit.activation != nullptr) {
    auto du = dy.isDense() ? dy : tensorOf(u);
    draft.run(ActivateBackward{dy.element, functionOf(unit),
        draft.use(KJ_ASSERT_NONNULL(state.value)), draft.use(dy), draft.use(du), false});
    dy = du;
  }
  dy = dense(converted(dy, options.element));
  KJ_IF_MAYBE(key, layer.bias) sumBias(*key, dy);

  auto& x = KJ_ASSERT_NONNULL(state.input);
  auto shape = shapeOf(layer, x, dy);
  auto sums = draft.room(size_t(filters.paddedOutputs) * filters.plane * filters.paddedInputs *
                         bytesOf(options.element));
  draft.run(
      shape, Direction::BACKWARD_FILTERS, draft.use(x).data, draft.use(dy).data, draft.use(sums));
  draft.run(ExportFilters{
      options.element, draft.use(sums), layer.weightGradient, filters, 1 / options.lossScale});

  KJ_IF_MAYBE(to, sink(u)) {
    // The library cannot add, and writes only dense tensors of this element.
    bool isDirect = !to->adds && to->tensor.isDense() && to->tensor.element == options.element;
    auto dx = isDirect ? to->tensor : draft.tensor(options.element, x.channels, x.plane);
    draft.run(shape, Direction::BACKWARD_DATA, draft.use(dy).data, draft.use(state.filters),
        draft.use(dx).data);
    if (!isDirect) copy(converted(dx, to->tensor.element), to->tensor, to->adds);
  }
}

void Passes::sumBias(const Key& bias, const Tensor& dy) {
  auto partial = draft.room(partialBytes(dy.width));
  draft.run(SumColumns{dy.element, draft.use(dy), draft.use<float>(partial)});
  draft.run(FinishColumns{
      dy.channels, dy.width, draft.use<float>(partial), gradient(bias), 1 / options.lossScale});
}

// ---- batch norm

NormArrays Passes::normArrays(UnitId u, uint width) {
  auto start = draft.use<float>(states[u].norm);
  // A draft that only measures has no memory.
  if (start == nullptr) return {};
  return {start, start + width, start + 2 * width, start + 3 * width};
}

void Passes::forwardNorm(UnitId u, const BatchNorm& op) {
  auto& unit = units[u];
  auto& node = *unit.node;
  auto& x = input(u);
  auto& gamma = graph.keys[node.keys.begin];
  auto& beta = graph.keys[node.keys.begin + 1];
  auto& mean = graph.statistics[node.statistics.begin];
  auto& variance = graph.statistics[node.statistics.begin + 1];
  auto scale = op.fixedGamma ? nullptr : parameter(gamma);
  auto movingMean = arrays.statistics + mean.offset;
  auto movingVariance = arrays.statistics + variance.offset;

  const float* bias = nullptr;
  KJ_IF_MAYBE(key, biasForNorm(unit.inputs[0])) bias = parameter(*key);

  states[u].norm = draft.room(4 * x.width * sizeof(float));
  if (phase == Phase::TRAIN) {
    auto partial = draft.room(partialBytes(x.width));
    draft.run(SumMoments{x.element, draft.use(x), draft.use<float>(partial)});
    draft.run(
        FinishMoments{x.element, draft.use(x), draft.use<float>(partial), scale, parameter(beta),
            bias, movingMean, movingVariance, op.epsilon, op.momentum, normArrays(u, x.width)});
  } else {
    draft.run(FoldMoments{x.channels, x.width, scale, parameter(beta), bias, movingMean,
        movingVariance, op.epsilon, normArrays(u, x.width)});
  }
  auto y = place(u);
  auto norm = normArrays(u, x.width);
  draft.run(Normalize{y.element, functionOf(unit), draft.use(x), norm.scale, norm.shift,
      residual(u), draft.use(y)});
}

View Passes::residual(UnitId u) {
  return units[u].hasResidual ? draft.use(input(u, 1)) : View();
}

void Passes::backwardNorm(UnitId u, const BatchNorm& op) {
  auto& unit = units[u];
  auto& node = *unit.node;
  auto& x = input(u);
  auto dy = slope(u);
  auto& gamma = graph.keys[node.keys.begin];
  auto& beta = graph.keys[node.keys.begin + 1];

  View slopeOfResidual;
  bool adds = false;
  if (unit.hasResidual) {
    KJ_IF_MAYBE(to, sink(u, 1)) {
      slopeOfResidual = draft.use(to->tensor);
      adds = to->adds;
    }
  }
  auto partial = draft.room(partialBytes(x.width));
  draft.run(SumSlopes{x.element, functionOf(unit), draft.use(x), residual(u), draft.use(dy),
      normArrays(u, x.width), draft.use<float>(partial), slopeOfResidual, adds});
  auto coefficients = draft.room(3 * x.width * sizeof(float));
  auto view = draft.use(x);
  draft.run(FinishSlopes{view.pixels, x.channels, x.width, draft.use<float>(partial),
      normArrays(u, x.width), op.fixedGamma ? nullptr : gradient(gamma), gradient(beta),
      1 / options.lossScale, draft.use<float>(coefficients)});
  KJ_IF_MAYBE(to, sink(u)) {
    draft.run(NormalizeBackward{x.element, functionOf(unit), draft.use(x), residual(u),
        draft.use(dy), normArrays(u, x.width), draft.use<float>(coefficients),
        draft.use(to->tensor), to->adds});
  }
}

}  // namespace nn::cuda
