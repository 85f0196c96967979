#include "nn/cpu/forward.h"

#include <kj/debug.h>

#include "nn/cpu/choose_convolution.h"
#include "nn/cpu/copies.h"

namespace nn::cpu {
namespace {

class Forward {
public:
  Forward(Draft& draft, dnnl_engine_t engine): draft(draft), engine(engine) {}

  void forward(const Unit& unit) {
    Draft::Scope scope(draft, unit);
    bool isStored = !unit.recomputed && !unit.is<Input>() && !unit.is<SoftmaxCrossEntropy>();
    if (isStored && !dropsImages(unit)) {
      draft.storage[unit.id].value =
          draft.bufferFor(unit, draft.extentOf(unit).values(), draft.elementOf(unit));
    }
    KJ_SWITCH_ONEOF(unit.node->op) {
      KJ_CASE_ONEOF(_, Input) {
      }
      KJ_CASE_ONEOF(op, Conv2d) forwardConvolution(unit, op);
      KJ_CASE_ONEOF(_, Dense) forwardDense(unit);
      KJ_CASE_ONEOF(op, BatchNorm) forwardNorm(unit, op);
      KJ_CASE_ONEOF(op, Activation) {
        if (op.function == Activation::GELU) {
          if (!unit.recomputed) draft.fill(unit, unit.at, draft.valueOf(unit, unit.at));
          return;
        }
        copyInto(unit, draft.before(unit), Write::SET);
        auto y = draft.valueOf(unit, unit.at);
        draft.add(unit.at, activate(op.function, draft.extentOf(unit), y), {y});
      }
      KJ_CASE_ONEOF(op, Scale) {
        auto x = draft.valueOf(draft.before(unit), unit.at), y = draft.valueOf(unit, unit.at);
        draft.add(unit.at, scale(draft.extentOf(unit), op.factor, x, y, Write::SET), {x, y});
      }
      KJ_CASE_ONEOF(op, Dropout) forwardDropout(unit, op);
      KJ_CASE_ONEOF(op, Pool) forwardPool(unit, op);
      KJ_CASE_ONEOF(_, Add) {
        bool first = true;
        for (UnitId input: unit.inputs) {
          copyInto(unit, draft.units.all[input], first ? Write::SET : Write::ADD);
          first = false;
        }
      }
      KJ_CASE_ONEOF(_, Concat) {
        if (!unit.recomputed) draft.fill(unit, unit.at, draft.valueOf(unit, unit.at));
      }
      KJ_CASE_ONEOF(_, SoftmaxCrossEntropy) forwardLoss(unit);
    }
    KJ_IF_MAYBE(function, unit.activation) {
      if (!unit.is<BatchNorm>()) {
        auto y = draft.valueOf(unit, unit.at);
        draft.add(unit.at, activate(*function, draft.extentOf(unit), y), {y});
      }
    }
  }

private:
  Draft& draft;
  dnnl_engine_t engine;

  void copyInto(const Unit& unit, const Unit& input, Write write) {
    auto from = draft.valueOf(input, unit.at), to = draft.valueOf(unit, unit.at);
    draft.add(unit.at, copy(draft.extentOf(unit), from, to, write), {from, to});
  }

  void forwardConvolution(const Unit& unit, const Conv2d& op) {
    auto& input = draft.before(unit);
    ConvolutionShape shape = {.op = op,
        .in = input.node->shape,
        .out = unit.node->shape,
        .addsBias = (op.bias && !unit.biasIsInert) || unit.folded != nullptr,
        .block = draft.block,
        .element = draft.element,
        .images = draft.images,
        .lanes = draft.lanes};
    // Sizes come later; backward buffers stay empty if it does not train.
    auto& forwardWeights = draft.batchBuffer(0);
    auto& backwardWeights = draft.batchBuffer(0);
    auto& sums = draft.batchBuffer(0);
    ConvolutionArrays weights = {.weights = draft.parameterAt(unit, 0),
        .bias = op.bias ? draft.parameterAt(unit, 1) : nullptr,
        .weightsGradient = draft.gradientAt(unit, 0),
        .biasGradient = op.bias ? draft.gradientAt(unit, 1) : nullptr,
        .forwardWeights = &forwardWeights,
        .backwardWeights = &backwardWeights,
        .sums = &sums};
    if (unit.folded != nullptr) {
      auto& folded = draft.batchBuffer(0);
      auto& key = draft.graph.keys[unit.node->keys.begin];
      folded.values = key.size + key.rows;
      folded.use(draft.units.forwardPhases[unit.segment].begin);
      draft.storage[unit.id].folded = folded;
      weights.folded = &folded;
    }
    auto& convolution = *draft.plan->convolutions.add(makeConvolution(shape, weights, engine));
    draft.storage[unit.id].convolution = convolution;

    // Packed at the segment's start.
    forwardWeights.use(draft.units.forwardPhases[unit.segment].begin);
    forwardWeights.use(unit.at);
    backwardWeights.use(draft.units.backwardPhases[unit.segment].begin);
    backwardWeights.use(unit.backwardAt);
    sums.use(unit.backwardAt);

    auto x = draft.valueOf(input, unit.at, convolution.inputLayouts().forward);
    auto y = draft.valueOf(unit, unit.at);
    auto& scratch = draft.workspace(unit.at);
    draft.add(unit.at, convolution.forward(x, y, scratch), {x, y});
  }

  void forwardDense(const Unit& unit) {
    auto& op = unit.node->op.get<Dense>();
    auto& layer = *draft.plan->denseLayers.add(kj::heap<DenseLayer>());
    layer.inputs = draft.before(unit).node->shape.size();
    layer.units = op.units;
    layer.weights = draft.parameterAt(unit, 0);
    layer.bias = op.bias ? draft.parameterAt(unit, 1) : nullptr;
    layer.gradient = draft.gradientAt(unit, 0);
    auto& sums = draft.batchBuffer(0);
    if (draft.phase == Phase::TRAIN) {
      sums.values = (draft.lanes - 1) * layer.parameters();
      sums.use(unit.backwardAt);
    }
    layer.sums = &sums;
    draft.storage[unit.id].dense = layer;

    auto x = draft.rowsOf(draft.before(unit), unit.at), y = draft.valueOf(unit, unit.at);
    bool isFloats = y.element() == Element::FLOAT;
    Place rows = isFloats ? y : Place{&draft.scratchBuffer(unit.at, y.stride())};
    draft.add(unit.at, denseForward(layer, x, rows), {x, rows});
    if (!isFloats) draft.add(unit.at, copy(y.stride(), rows, y, Write::SET), {rows, y});
  }

  static After after(const Unit& norm) {
    KJ_IF_MAYBE(function, norm.activation) {
      return *function == Activation::GELU ? After::GELU : After::RELU;
    }
    return After::NOTHING;
  }

  void forwardNorm(const Unit& unit, const BatchNorm& op) {
    auto extent = draft.extentOf(unit);
    size_t channels = extent.blocks * draft.block;
    auto& own = draft.batchBuffer(0);
    own.values = Norm::ARRAYS * channels;
    own.keep();
    auto& statisticsPartials = draft.batchBuffer(0);
    auto& gradientPartials = draft.batchBuffer(0);
    if (draft.phase == Phase::TRAIN) {
      statisticsPartials.values = gradientPartials.values = draft.images * 2 * channels;
      statisticsPartials.use(unit.at);
      gradientPartials.use(unit.complete);
    }
    auto& first = draft.graph.statistics[unit.node->statistics.begin];
    auto& second = draft.graph.statistics[unit.node->statistics.begin + 1];
    auto& y = draft.before(unit);
    auto& norm = *draft.plan->norms.add(kj::heap<Norm>(Norm{.extent = extent,
        .images = draft.images,
        .op = op,
        .after = after(unit),
        .gamma = draft.parameterAt(unit, 0),
        .beta = draft.parameterAt(unit, 1),
        .gammaGradient = draft.gradientAt(unit, 0),
        .betaGradient = draft.gradientAt(unit, 1),
        .movingMean = draft.arrays.statistics.begin() + first.offset,
        .movingVariance = draft.arrays.statistics.begin() + second.offset,
        .inertBias = y.biasIsInert ? draft.parameterAt(y, 1) : nullptr,
        .channels = &own,
        .statisticsPartials = &statisticsPartials,
        .gradientPartials = &gradientPartials}));
    draft.storage[unit.id].norm = norm;

    auto value = draft.valueOf(y, unit.at);
    if (draft.phase == Phase::TRAIN) {
      draft.add(unit.at, takeStatistics(norm, value), {value});
      draft.phaseAt(unit.at).batchTasks.add(draft.timed(unit.at, combineStatistics(norm)));
    } else {
      draft.plan->segments[unit.segment].prepareForward.add(takeMoving(norm));
    }
    if (!unit.recomputed) draft.fill(unit, unit.ready, draft.valueOf(unit, unit.ready));
  }

  // Whether it is a dropout on the images. Its value stays in their order: of one channel or of
  // three, blocks would be mostly padding.
  bool dropsImages(const Unit& unit) const {
    return unit.is<Dropout>() && draft.before(unit).is<Input>();
  }

  void forwardDropout(const Unit& unit, const Dropout& op) {
    auto node = draft.nodeOf(unit);
    if (dropsImages(unit)) {
      size_t size = unit.node->shape.size();
      auto& rows = draft.batchBuffer(size);
      draft.storage[unit.id].rows = rows;
      auto x = draft.rowsOf(draft.before(unit), unit.at);
      draft.add(unit.at, dropRows(op, node, size, x, {&rows}), {x, {&rows}});
    } else {
      auto x = draft.valueOf(draft.before(unit), unit.at), y = draft.valueOf(unit, unit.at);
      draft.add(unit.at, drop(op, node, draft.extentOf(unit), x, y, Write::SET), {x, y});
    }
  }

  void forwardPool(const Unit& unit, const Pool& op) {
    auto x = draft.valueOf(draft.before(unit), unit.at), y = draft.valueOf(unit, unit.at);
    Place index;
    if (op.function == Pool::MAX) {
      KJ_REQUIRE(op.kernel < 256, "a max pool's window has at most 255 rows", unit.node->name);
    }
    if (op.function == Pool::MAX && draft.phase == Phase::TRAIN) {
      auto& buffer = draft.batchBuffer(draft.extentOf(unit).values() / 2);
      draft.storage[unit.id].index = buffer;
      index.buffer = &buffer;
    }
    draft.add(unit.at,
        pool(op, draft.before(unit).node->shape, unit.node->shape, draft.block, x, y, index),
        {x, y, index});
  }

  void forwardLoss(const Unit& unit) {
    auto& input = draft.before(unit);
    auto x = draft.valueOf(input, unit.at);
    // Logits may be read after the step.
    if (x.buffer->home == Buffer::SCRATCH || x.element() != Element::FLOAT) {
      auto& kept = draft.batchBuffer(x.stride());
      draft.add(unit.at, copy(draft.extentOf(input), x, {&kept}, Write::SET), {x, {&kept}});
      x = {&kept};
    }
    x.buffer->keep();
    draft.plan->logits = x;
    auto& verdicts = draft.plan->verdicts;
    if (draft.phase == Phase::VALIDATE) {
      draft.add(unit.at, loss(0, draft.extentOf(input), x, {}, verdicts), {x});
      return;
    }
    double smoothing = unit.node->op.get<SoftmaxCrossEntropy>().smoothing;
    auto& gradient = draft.batchBuffer(x.stride());
    draft.storage[input.id].logitsGradient = gradient;
    draft.add(unit.at, loss(smoothing, draft.extentOf(input), x, {&gradient}, verdicts),
        {x, {&gradient}});
    if (draft.elementOf(input) != Element::FLOAT) {
      auto& rounded = draft.batchBuffer(x.stride(), draft.elementOf(input));
      draft.storage[input.id].logitsGradient = rounded;
      draft.add(unit.at, copy(x.stride(), {&gradient}, {&rounded}, Write::SET),
          {{&gradient}, {&rounded}});
    }
  }
};

}  // namespace

void addForward(Draft& draft, dnnl_engine_t engine) {
  Forward forward(draft, engine);
  for (auto& unit: draft.units.all) forward.forward(unit);
}

}  // namespace nn::cpu
