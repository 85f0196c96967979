// Values and gradients of units, and the passes over one value. Layers with weights, and batch
// norms, are in passes_layers.cc.
#include "nn/cuda/passes.h"

#include <kj/debug.h>

#include "configs/language/failure.h"

namespace nn::cuda {

namespace {

Function functionOf(Activation::Function function) {
  switch (function) {
    case Activation::RELU:
      return Function::RELU;
    case Activation::TANH:
      return Function::TANH;
    case Activation::SIGMOID:
      return Function::SIGMOID;
    case Activation::ELU:
      return Function::ELU;
    case Activation::GELU:
      return Function::GELU;
  }
  KJ_UNREACHABLE;
}

bool takesActivation(const Unit& unit, Activation::Function function) {
  if (unit.is<BatchNorm>()) return true;
  // GELU's gradient needs its input.
  return function != Activation::GELU && (unit.is<Conv2d>() || unit.is<Dense>());
}

// Whether the last pass over its value is one of our kernels, which can write to any place.
bool writesAnywhere(const Unit& unit) {
  if (unit.is<Input>() || unit.is<Concat>()) return false;
  // The library's own output is dense.
  bool isBare = unit.activation == nullptr && unit.node->keys.size() == 1;
  return !(unit.is<Conv2d>() || unit.is<Dense>()) || !isBare;
}

}  // namespace

const Fusion FUSION = {.takesActivation = takesActivation, .addsResiduals = true};

Function functionOf(const Unit& unit) {
  KJ_IF_MAYBE(function, unit.activation) return functionOf(*function);
  return Function::NONE;
}

Passes::Passes(Draft& draft, const Graph& graph, Phase phase, const LoweringOptions& options,
    const DeviceArrays& arrays)
    : units(unitsOf(graph, phase, FUSION)),
      draft(draft),
      graph(graph),
      phase(phase),
      options(options),
      arrays(arrays),
      states(kj::heapArray<State>(units.size())),
      targets(kj::heapArray<kj::Maybe<ConcatSlice>>(units.size())) {
  for (UnitId u = 0; u < units.size(); ++u) {
    if (!units[u].is<Concat>()) continue;
    uint first = 0;
    for (UnitId input: units[u].inputs) {
      auto& from = units[input];
      if (from.uses.size() == 1 && writesAnywhere(from)) targets[input] = ConcatSlice{u, first};
      first += from.output->shape.channels;
    }
  }
}

void Passes::forward(UnitId u) {
  KJ_SWITCH_ONEOF(units[u].node->op) {
    KJ_CASE_ONEOF(op, Input) {
      auto to = place(u);
      draft.run(ImportPixels{to.element, arrays.pixels, draft.use(to), to.plane});
    }
    KJ_CASE_ONEOF(_, Conv2d) forwardLayer(u);
    KJ_CASE_ONEOF(_, Dense) forwardLayer(u);
    KJ_CASE_ONEOF(op, BatchNorm) forwardNorm(u, op);
    KJ_CASE_ONEOF(_, Activation) forwardActivation(u);
    KJ_CASE_ONEOF(op, Scale) {
      auto y = place(u);
      draft.run(ScaleBy{y.element, op.factor, draft.use(input(u)), draft.use(y), false});
    }
    KJ_CASE_ONEOF(_, Dropout) forwardDropout(u);
    KJ_CASE_ONEOF(op, Pool) forwardPool(u, op);
    KJ_CASE_ONEOF(_, Add) forwardAdd(u);
    KJ_CASE_ONEOF(_, Concat) forwardConcat(u);
    KJ_CASE_ONEOF(op, SoftmaxCrossEntropy) forwardLoss(u, op);
  }
}

void Passes::backward(UnitId u) {
  KJ_SWITCH_ONEOF(units[u].node->op) {
    KJ_CASE_ONEOF(op, Input) {
    }
    KJ_CASE_ONEOF(_, Conv2d) backwardLayer(u);
    KJ_CASE_ONEOF(_, Dense) backwardLayer(u);
    KJ_CASE_ONEOF(op, BatchNorm) backwardNorm(u, op);
    KJ_CASE_ONEOF(op, Activation) {
      auto& state = states[u];
      auto& from = state.before.orDefault(KJ_ASSERT_NONNULL(state.value));
      auto function = functionOf(op.function);
      KJ_IF_MAYBE(to, sink(u)) {
        draft.run(ActivateBackward{to->tensor.element, function, draft.use(from),
            draft.use(slope(u)), draft.use(to->tensor), to->adds});
      }
    }
    KJ_CASE_ONEOF(op, Scale) {
      KJ_IF_MAYBE(to, sink(u)) {
        draft.run(ScaleBy{
            to->tensor.element, op.factor, draft.use(slope(u)), draft.use(to->tensor), to->adds});
      }
    }
    KJ_CASE_ONEOF(_, Dropout) backwardDropout(u);
    KJ_CASE_ONEOF(op, Pool) backwardPool(u, op);
    KJ_CASE_ONEOF(_, Add) backwardAdd(u);
    KJ_CASE_ONEOF(_, Concat) backwardConcat(u);
    KJ_CASE_ONEOF(op, SoftmaxCrossEntropy) {
      // The forward pass has already computed the gradient of the logits.
    }
  }
}

// ---- values

Element Passes::elementOf(UnitId u) const {
  return units[u].staysFloats ? Element::FLOAT32 : options.element;
}

Tensor Passes::tensorOf(UnitId u) {
  auto& shape = units[u].output->shape;
  return draft.tensor(elementOf(u), shape.channels, planeOf(shape));
}

Tensor Passes::place(UnitId u) {
  Tensor result;
  KJ_IF_MAYBE(target, targets[u]) {
    auto& concat = states[target->concat].value;
    if (concat == nullptr) concat = tensorOf(target->concat);
    result = Draft::part(
        KJ_ASSERT_NONNULL(concat), target->firstChannel, units[u].output->shape.channels);
  } else {
    result = tensorOf(u);
  }
  states[u].value = result;
  return result;
}

const Tensor& Passes::input(UnitId u, uint i) const {
  return KJ_ASSERT_NONNULL(states[units[u].inputs[i]].value);
}

Tensor Passes::dense(const Tensor& tensor) {
  if (tensor.isDense()) return tensor;
  auto result = draft.tensor(tensor.element, tensor.channels, tensor.plane);
  copy(tensor, result);
  return result;
}

Tensor Passes::converted(const Tensor& from, Element element) {
  if (from.element == element) return from;
  auto floats = draft.room(size_t(draft.images) * from.channels * sizeof(float));
  draft.run(ExportRows{from.element, draft.use(from), draft.use<float>(floats)});
  auto result = draft.tensor(element, from.channels, from.plane);
  draft.run(ImportPixels{element, draft.use<float>(floats), draft.use(result), result.plane});
  return result;
}

void Passes::copy(const Tensor& from, const Tensor& to, bool adds) {
  draft.run(ScaleBy{to.element, 1, draft.use(from), draft.use(to), adds});
}

// ---- gradients

const Tensor& Passes::slope(UnitId u) const {
  return KJ_ASSERT_NONNULL(states[u].slope);
}

kj::Maybe<Passes::Sink> Passes::sink(UnitId u, uint i) {
  UnitId input = units[u].inputs[i];
  if (!units[input].trains) return nullptr;
  auto& known = states[input].slope;
  KJ_IF_MAYBE(tensor, known) return Sink{*tensor, true};
  auto tensor = tensorOf(input);
  known = tensor;
  return Sink{tensor, false};
}

// ---- passes over one value

void Passes::forwardActivation(UnitId u) {
  auto function = functionOf(units[u].node->op.get<Activation>().function);
  // The gradient of GELU needs its input, so the input is kept.
  if (function == Function::GELU) states[u].before = input(u);
  auto y = place(u);
  draft.run(Activate{y.element, function, draft.use(input(u)), nullptr, draft.use(y)});
}

void Passes::forwardDropout(UnitId u) {
  auto y = place(u);
  draft.run(DropOut{y.element, masksOf(u), y.plane, draft.use(input(u)), draft.use(y), false});
}

void Passes::backwardDropout(UnitId u) {
  KJ_IF_MAYBE(to, sink(u)) {
    auto& dy = slope(u);
    draft.run(DropOut{
        to->tensor.element, masksOf(u), dy.plane, draft.use(dy), draft.use(to->tensor), to->adds});
  }
}

const DropoutMask* Passes::masksOf(UnitId u) const {
  size_t before = 0;
  for (NodeId node: droppingNodes(graph)) {
    if (node == units[u].nodeId) return arrays.masks + before * draft.images;
    before++;
  }
  KJ_UNREACHABLE;
}

Windows Passes::windowsOf(UnitId u, const Pool& op) const {
  auto& out = units[u].output->shape;
  return {.in = input(u).plane,
      .out = planeOf(out),
      .kernel = op.kernel,
      .stride = op.stride,
      .pad = op.pad};
}

void Passes::forwardPool(UnitId u, const Pool& op) {
  auto windows = windowsOf(u, op);
  if (op.function == Pool::MAX && op.kernel > Pool::GPU_KERNEL_MAX) {
    auto side = op.kernel;
    configs::fail("a GPU takes the maximum over windows of at most ", Pool::GPU_KERNEL_MAX, "×",
        Pool::GPU_KERNEL_MAX, ", but `", units[u].node->name, "` has windows of ", side, "×", side,
        ". Choose devices = [\"cpu\"]");
  }
  auto& x = input(u);
  auto y = place(u);
  if (op.function == Pool::AVERAGE) {
    draft.run(PoolAverage{y.element, windows, draft.use(x), draft.use(y)});
    return;
  }
  uint8_t* places = nullptr;
  if (units[u].trains) {
    auto to = draft.use(y);
    states[u].places = draft.room(size_t(to.pixels) * to.channels);
    places = draft.use<uint8_t>(states[u].places);
  }
  draft.run(PoolMax{y.element, windows, draft.use(x), draft.use(y), places});
}

void Passes::backwardPool(UnitId u, const Pool& op) {
  KJ_IF_MAYBE(to, sink(u)) {
    auto windows = windowsOf(u, op);
    auto element = to->tensor.element;
    if (op.function == Pool::AVERAGE) {
      draft.run(PoolAverageBackward{
          element, windows, draft.use(slope(u)), draft.use(to->tensor), to->adds});
    } else {
      draft.run(PoolMaxBackward{element, windows, draft.use(slope(u)),
          draft.use<uint8_t>(states[u].places), draft.use(to->tensor), to->adds});
    }
  }
}

// ---- sums and concats

void Passes::forwardAdd(UnitId u) {
  auto y = place(u);
  for (uint i = 1; i < units[u].inputs.size(); ++i) {
    auto& a = i == 1 ? input(u) : y;
    draft.run(AddUp{y.element, draft.use(a), draft.use(input(u, i)), draft.use(y)});
  }
  if (units[u].inputs.size() == 1) copy(input(u), y);
}

void Passes::backwardAdd(UnitId u) {
  auto dy = slope(u);
  auto& inputs = units[u].inputs;
  for (auto i: kj::indices(inputs)) {
    UnitId input = inputs[i];
    if (!units[input].trains) continue;
    auto& known = states[input].slope;
    KJ_IF_MAYBE(tensor, known) {
      copy(dy, *tensor, true);
    } else if (i + 1 == inputs.size()) {
      // Nothing else reads dy any more.
      known = dy;
    } else {
      auto tensor = tensorOf(input);
      copy(dy, tensor);
      known = tensor;
    }
  }
}

void Passes::forwardConcat(UnitId u) {
  // Null if no input was written to its part of the concat.
  if (states[u].value == nullptr) states[u].value = tensorOf(u);
  auto whole = KJ_ASSERT_NONNULL(states[u].value);
  uint first = 0;
  for (UnitId input: units[u].inputs) {
    uint channels = units[input].output->shape.channels;
    if (targets[input] == nullptr) {
      copy(KJ_ASSERT_NONNULL(states[input].value), Draft::part(whole, first, channels));
    }
    first += channels;
  }
}

void Passes::backwardConcat(UnitId u) {
  auto whole = slope(u);
  uint first = 0;
  for (UnitId input: units[u].inputs) {
    uint channels = units[input].output->shape.channels;
    auto part = Draft::part(whole, first, channels);
    first += channels;
    if (!units[input].trains) continue;
    auto& known = states[input].slope;
    KJ_IF_MAYBE(tensor, known) {
      copy(part, *tensor, true);
    } else {
      known = part;
    }
  }
}

// ---- the loss

void Passes::forwardLoss(UnitId u, const SoftmaxCrossEntropy& op) {
  auto& x = input(u);
  bool trains = phase == Phase::TRAIN;
  // Exports the logits as plain floats, for the loss and for Program::logits().
  draft.run(ExportRows{x.element, draft.use(x), arrays.logits});
  uint classes = x.channels;
  View logits{arrays.logits, draft.images, classes, classes, classes};
  View slope;
  Element element = x.element;
  if (trains) {
    KJ_IF_MAYBE(to, sink(u)) {
      slope = draft.use(to->tensor);
      element = to->tensor.element;
    }
  }
  draft.run(SoftmaxLoss{element, logits, arrays.labels, trains ? op.smoothing : 0, arrays.rows,
      slope, options.lossScale});
  draft.run(SumRows{arrays.rows, draft.images, arrays.sums, arrays.sums + 1});
}

}  // namespace nn::cuda
