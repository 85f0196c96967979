#include "nn/cpu/forward.h"

#include <kj/debug.h>

#include "nn/cpu/amx_convolution.h"
#include "nn/cpu/choose_convolution.h"
#include "nn/cpu/copies.h"

namespace nn::cpu {
namespace {

class Forward {
public:
  Forward(PlanBuilder& builder, dnnl_engine_t engine): builder(builder), engine(engine) {}

  void forward(const StagedUnit& unit) {
    PlanBuilder::Scope scope(builder, unit);
    bool isStored = !unit.recomputed && !unit.is<Input>() && !unit.is<SoftmaxCrossEntropy>();
    if (isStored && !dropsImages(unit)) {
      builder.storage[unit.id].value =
          builder.bufferFor(unit, builder.extentOf(unit).values(), builder.elementOf(unit));
    }
    KJ_SWITCH_ONEOF(unit.node->op) {
      KJ_CASE_ONEOF(_, Input) {
      }
      KJ_CASE_ONEOF(op, Conv2d) forwardConvolution(unit, op, op.kernel, op.kernel);
      KJ_CASE_ONEOF(op, Dense) {
        if (builder.amx == nullptr) {
          forwardDense(unit);
        } else {
          auto& in = builder.before(unit).node->shape;
          forwardConvolution(unit, {.stride = 1, .bias = op.bias}, in.height, in.width);
        }
      }
      KJ_CASE_ONEOF(op, BatchNorm) forwardNorm(unit, op);
      KJ_CASE_ONEOF(op, Activation) {
        if (op.function == Activation::GELU) {
          if (!unit.recomputed) builder.fill(unit, unit.at, builder.valueOf(unit, unit.at));
          return;
        }
        copyInto(unit, builder.before(unit), Write::SET);
        auto y = builder.valueOf(unit, unit.at);
        builder.add(unit.at, activate(op.function, builder.extentOf(unit), y), {y});
      }
      KJ_CASE_ONEOF(op, Scale) {
        auto x = builder.valueOf(builder.before(unit), unit.at), y = builder.valueOf(unit, unit.at);
        builder.add(unit.at, scale(builder.extentOf(unit), op.factor, x, y, Write::SET), {x, y});
      }
      KJ_CASE_ONEOF(op, Dropout) forwardDropout(unit, op);
      KJ_CASE_ONEOF(op, Pool) forwardPool(unit, op);
      KJ_CASE_ONEOF(_, Add) forwardSum(unit);
      KJ_CASE_ONEOF(_, Concat) {
        if (!unit.recomputed) builder.fill(unit, unit.at, builder.valueOf(unit, unit.at));
      }
      KJ_CASE_ONEOF(_, SoftmaxCrossEntropy) forwardLoss(unit);
    }
    KJ_IF_MAYBE(function, unit.activation) {
      if (!unit.is<BatchNorm>() && !addsRelu(unit)) {
        auto y = builder.valueOf(unit, unit.at);
        builder.add(unit.at, activate(*function, builder.extentOf(unit), y), {y});
      }
    }
  }

private:
  PlanBuilder& builder;
  dnnl_engine_t engine;

  void copyInto(const StagedUnit& unit, const StagedUnit& input, Write write) {
    auto from = builder.valueOf(input, unit.at), to = builder.valueOf(unit, unit.at);
    builder.add(unit.at, copy(builder.extentOf(unit), from, to, write), {from, to});
  }

  // Whether the last task of a sum does the ReLU after it.
  static bool addsRelu(const StagedUnit& unit) {
    KJ_IF_MAYBE(function, unit.activation) {
      return unit.is<Add>() && unit.inputs.size() > 1 && *function == Activation::RELU;
    }
    return false;
  }

  void forwardSum(const StagedUnit& unit) {
    auto y = builder.valueOf(unit, unit.at);
    auto extent = builder.extentOf(unit);
    for (auto i: kj::indices(unit.inputs)) {
      auto& input = builder.stages.units[unit.inputs[i]];
      if (i == 0) {
        builder.fillFrom(input, unit.at, y);
      } else if (i + 1 == unit.inputs.size() && addsRelu(unit)) {
        auto x = builder.valueOf(input, unit.at);
        builder.add(unit.at, addRelu(extent, x, y), {x, y});
      } else {
        copyInto(unit, input, Write::ADD);
      }
    }
  }

  void forwardConvolution(
      const StagedUnit& unit, const Conv2d& op, uint kernelHeight, uint kernelWidth) {
    auto& input = builder.before(unit);
    ConvolutionShape shape = {.op = op,
        .in = input.node->shape,
        .out = unit.node->shape,
        .kernelHeight = kernelHeight,
        .kernelWidth = kernelWidth,
        .canBePlain = builder.isPlain(input),
        .inputTrains = input.trains,
        .addsBias = (op.bias && !unit.biasIsInert) || unit.folded != nullptr,
        .block = builder.block,
        .element = builder.element,
        .batch = builder.batch,
        .lanes = builder.lanes};
    // Sizes come later; backward buffers stay empty if it does not train.
    auto& forwardWeights = builder.batchBuffer(0);
    auto& backwardWeights = builder.batchBuffer(0);
    auto& sums = builder.batchBuffer(0);
    ConvolutionArrays weights = {.weights = builder.parameterAt(unit, 0),
        .bias = op.bias ? builder.parameterAt(unit, 1) : nullptr,
        .weightsGradient = builder.gradientAt(unit, 0),
        .biasGradient = op.bias ? builder.gradientAt(unit, 1) : nullptr,
        .forwardWeights = &forwardWeights,
        .backwardWeights = &backwardWeights,
        .sums = &sums};
    if (unit.folded != nullptr) {
      auto& folded = builder.batchBuffer(0);
      auto& key = builder.graph.keys[unit.node->keys.begin];
      folded.values = key.size + key.rows;
      folded.use(builder.stages.forward[unit.segment].begin);
      builder.storage[unit.id].folded = folded;
      weights.folded = &folded;
    }
    auto own = builder.amx == nullptr ? makeConvolution(shape, weights, engine)
                                      : makeAmxConvolution(shape, weights, *builder.amx);
    auto& convolution = *builder.plan->convolutions.add(kj::mv(own));
    builder.storage[unit.id].convolution = convolution;

    // Packed at the segment's start.
    forwardWeights.use(builder.stages.forward[unit.segment].begin);
    forwardWeights.use(unit.at);
    backwardWeights.use(builder.stages.backward[unit.segment].begin);
    backwardWeights.use(unit.backwardAt);
    sums.use(unit.backwardAt);

    auto x = builder.inputOf(input, unit.at, convolution.inputLayouts().forward);
    auto y = builder.valueOf(unit, unit.at);
    auto& scratch = builder.workspace(unit.at);
    builder.add(unit.at, convolution.forward(x, y, scratch), {x, y});
  }

  void forwardDense(const StagedUnit& unit) {
    auto& op = unit.node->op.get<Dense>();
    auto& layer = *builder.plan->denseLayers.add(kj::heap<DenseLayer>());
    layer.inputs = builder.before(unit).node->shape.size();
    layer.units = op.units;
    layer.weights = builder.parameterAt(unit, 0);
    layer.bias = op.bias ? builder.parameterAt(unit, 1) : nullptr;
    layer.gradient = builder.gradientAt(unit, 0);
    auto& sums = builder.batchBuffer(0);
    if (builder.phase == Phase::TRAIN) {
      sums.values = (builder.lanes - 1) * layer.parameters();
      sums.use(unit.backwardAt);
    }
    layer.sums = &sums;
    builder.storage[unit.id].dense = layer;

    auto x = builder.rowsOf(builder.before(unit), unit.at), y = builder.valueOf(unit, unit.at);
    bool isFloats = y.element() == Element::FLOAT32;
    Place rows = isFloats ? y : Place{&builder.scratchBuffer(unit.at, y.stride())};
    builder.add(unit.at, denseForward(layer, x, rows), {x, rows});
    if (!isFloats) builder.add(unit.at, copy(y.stride(), rows, y, Write::SET), {rows, y});
  }

  static After after(const StagedUnit& norm) {
    KJ_IF_MAYBE(function, norm.activation) {
      return *function == Activation::GELU ? After::GELU : After::RELU;
    }
    return After::NOTHING;
  }

  void forwardNorm(const StagedUnit& unit, const BatchNorm& op) {
    auto extent = builder.extentOf(unit);
    size_t channels = extent.blocks * builder.block;
    auto& own = builder.batchBuffer(0);
    own.values = Norm::ARRAYS * channels;
    own.keep();
    auto& statisticsPartials = builder.batchBuffer(0);
    auto& gradientPartials = builder.batchBuffer(0);
    if (builder.phase == Phase::TRAIN) {
      statisticsPartials.values = gradientPartials.values = builder.batch.groups() * 2 * channels;
      statisticsPartials.use(unit.at);
      gradientPartials.use(unit.complete);
    }
    auto& first = builder.graph.statistics[unit.node->statistics.begin];
    auto& second = builder.graph.statistics[unit.node->statistics.begin + 1];
    auto& y = builder.before(unit);
    auto& norm = *builder.plan->norms.add(kj::heap<Norm>(Norm{.extent = extent,
        .batch = builder.batch,
        .op = op,
        .after = after(unit),
        .gamma = builder.parameterAt(unit, 0),
        .beta = builder.parameterAt(unit, 1),
        .gammaGradient = builder.gradientAt(unit, 0),
        .betaGradient = builder.gradientAt(unit, 1),
        .movingMean = builder.arrays.statistics.begin() + first.offset,
        .movingVariance = builder.arrays.statistics.begin() + second.offset,
        .inertBias = y.biasIsInert ? builder.parameterAt(y, 1) : nullptr,
        .channels = &own,
        .statisticsPartials = &statisticsPartials,
        .gradientPartials = &gradientPartials}));
    builder.storage[unit.id].norm = norm;

    auto value = builder.valueOf(y, unit.at);
    if (builder.phase == Phase::TRAIN) {
      builder.add(unit.at, takeStatistics(norm, value), {value});
      builder.stageAt(unit.at).batchTasks.add(builder.timed(unit.at, combineStatistics(norm)));
    } else {
      builder.plan->segments[unit.segment].prepareForward.add(takeMoving(norm));
    }
    if (!unit.recomputed) builder.fill(unit, unit.ready, builder.valueOf(unit, unit.ready));
  }

  // Whether `unit` is a dropout of the input images. Its value stays in plain order, because blocks
  // of one or three channels would be mostly padding.
  bool dropsImages(const StagedUnit& unit) const {
    return unit.is<Dropout>() && builder.before(unit).is<Input>();
  }

  void forwardDropout(const StagedUnit& unit, const Dropout& op) {
    if (dropsImages(unit)) {
      size_t size = unit.node->shape.size();
      auto& rows = builder.batchBuffer(size * builder.batch.group);
      builder.storage[unit.id].rows = rows;
      auto x = builder.rowsOf(builder.before(unit), unit.at);
      builder.add(
          unit.at, dropRows(op, unit.nodeId, size, builder.batch, x, {&rows}), {x, {&rows}});
    } else {
      auto x = builder.valueOf(builder.before(unit), unit.at), y = builder.valueOf(unit, unit.at);
      builder.add(unit.at,
          drop(op, unit.nodeId, builder.extentOf(unit), builder.batch, x, y, Write::SET), {x, y});
    }
  }

  void forwardPool(const StagedUnit& unit, const Pool& op) {
    auto x = builder.valueOf(builder.before(unit), unit.at), y = builder.valueOf(unit, unit.at);
    Place index;
    if (op.function == Pool::MAX) {
      KJ_REQUIRE(op.kernel < 256, "a max pool's window has at most 255 rows", unit.node->name);
    }
    if (op.function == Pool::MAX && builder.phase == Phase::TRAIN) {
      auto& buffer = builder.batchBuffer(builder.extentOf(unit).values() / 2);
      builder.storage[unit.id].index = buffer;
      index.buffer = &buffer;
    }
    builder.add(unit.at,
        pool(op, builder.before(unit).node->shape, unit.node->shape, builder.block, x, y, index),
        {x, y, index});
  }

  void forwardLoss(const StagedUnit& unit) {
    auto& input = builder.before(unit);
    auto x = rowsOfLogits(input, unit.at);
    x.buffer->keep();
    builder.plan->logits = x;
    auto& verdicts = builder.plan->verdicts;
    uint classes = input.node->shape.channels;
    if (builder.phase == Phase::VALIDATE) {
      builder.add(unit.at, loss(0, classes, builder.batch, x, {}, verdicts), {x});
      return;
    }
    double smoothing = unit.node->op.get<SoftmaxCrossEntropy>().smoothing;
    Place rows = {&builder.batchBuffer(x.stride())};
    builder.add(unit.at, loss(smoothing, classes, builder.batch, x, rows, verdicts), {x, rows});

    // Converts the gradient to the layout and the element that the units before the loss need.
    auto extent = builder.extentOf(input);
    auto element = builder.elementOf(input);
    Place gradient = rows;
    if (builder.amx != nullptr) {
      gradient = {&builder.batchBuffer(extent.values(), element)};
      // The rows of images that only fill a group are 0.
      builder.add(unit.at, cpu::block(extent, builder.batch.filled(), rows, gradient, Write::SET),
          {rows, gradient});
    } else if (element != Element::FLOAT32) {
      gradient = {&builder.batchBuffer(x.stride(), element)};
      builder.add(unit.at, copy(x.stride(), rows, gradient, Write::SET), {rows, gradient});
    }
    builder.storage[input.id].logitsGradient = *gradient.buffer;
  }

  // As floats, in memory that may be read after the step.
  Place rowsOfLogits(const StagedUnit& input, uint p) {
    auto x = builder.valueOf(input, p);
    auto extent = builder.extentOf(input);
    if (builder.amx != nullptr) {
      Place rows = {&builder.batchBuffer(extent.channels * builder.batch.group)};
      builder.add(p, unblock(extent, builder.batch, x, rows), {x, rows});
      return rows;
    }
    if (x.buffer->home == Buffer::BATCH && x.element() == Element::FLOAT32) return x;
    Place rows = {&builder.batchBuffer(x.stride())};
    builder.add(p, copy(extent, x, rows, Write::SET), {x, rows});
    return rows;
  }
};

}  // namespace

void addForward(PlanBuilder& builder, dnnl_engine_t engine) {
  Forward forward(builder, engine);
  for (auto& unit: builder.stages.units) forward.forward(unit);
}

}  // namespace nn::cpu
