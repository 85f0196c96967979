#include "nn/cuda/cudnn_convolution.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>

#include "nn/cuda/cudnn_graph.h"
#include "nn/cuda/handles.h"

namespace nn::cuda {

namespace {

constexpr auto NAME_START = "cudnn "_kj;

Descriptor graphFor(
    const CudnnTarget& target, const ConvolutionProblem& shape, Direction direction) {
  auto graph = convolutionGraph(shape, direction);
  KJ_IF_MAYBE(handle, target.tryGet<cudnnHandle_t>()) {
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, *handle);
  }
  graph.finalize();
  return graph;
}

// Sets the device that `to` is for, unless the handle of the graph determines it.
void describe(const CudnnTarget& target, Descriptor& to, cudnnBackendAttributeName_t word) {
  KJ_IF_MAYBE(properties, target.tryGet<Descriptor>()) to.set(word, *properties);
}

kj::Array<Descriptor> proposals(
    const CudnnTarget& target, const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  describe(target, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  // cuDNN reports an error if it has no proposal.
  if (heuristics.tryToFinalize() != nullptr) return nullptr;
  auto room = heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  return heuristics.getAll(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, room);
}

Descriptor engineOf(const Descriptor& configuration) {
  auto engines =
      configuration.getAll(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  KJ_REQUIRE(engines.size() == 1, "a configuration is of one engine");
  return kj::mv(engines[0]);
}

bool isWelcome(cudnnBackendNumericalNote_t note, const ConvolutionProblem& shape) {
  switch (note) {
    // These engines round factors or sums to fewer bits than they are stored with, apart from TF32.
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      return false;
    // For float32, these engines round factors to TF32.
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      return shape.element != Element::FLOAT32 || shape.tensorFloats;
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      return !shape.deterministic;
    default:
      return true;
  }
}

bool isWelcome(const Descriptor& configuration, const ConvolutionProblem& shape) {
  auto notes =
      engineOf(configuration).getAll<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  for (auto note: notes) {
    if (!isWelcome(note, shape)) return false;
  }
  return true;
}

kj::String nameOf(const Descriptor& configuration) {
  kj::Vector<kj::String> words;
  auto index = engineOf(configuration).get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  words.add(kj::str(NAME_START, index));
  auto knobs = configuration.getAll(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
      CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS);
  for (auto& knob: knobs) {
    words.add(kj::str(int(knob.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE)), "=",
        knob.get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)));
  }
  return kj::strArray(words, " ");
}

kj::String notesOf(const Descriptor& engine) {
  constexpr kj::StringPtr NUMERICAL[] = {"tensor cores"_kj, "down-converted factors"_kj,
      "reduced sums"_kj, "FFT"_kj, "nondeterministic"_kj, "Winograd"_kj, "4x4"_kj, "6x6"_kj,
      "13x13"_kj, "strict NaN"_kj};
  constexpr kj::StringPtr BEHAVIOR[] = {"compiled at run time"_kj, "int8 filters"_kj,
      "int8 bias"_kj, "native CUDA graph"_kj, "cuBLASLt"_kj};
  kj::Vector<kj::String> notes;
  auto add = [&](kj::ArrayPtr<const kj::StringPtr> words, uint note) {
    // A newer library may have more notes.
    notes.add(note < words.size() ? kj::str(words[note]) : kj::str("note ", note));
  };
  for (auto n: engine.getAll<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)) {
    add(NUMERICAL, n);
  }
  for (auto n: engine.getAll<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE)) {
    add(BEHAVIOR, n);
  }
  return kj::strArray(notes, ", ");
}

bool isCompiledAtRunTime(const Descriptor& configuration) {
  auto notes =
      engineOf(configuration).getAll<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
  for (auto note: notes) {
    if (note == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) return true;
  }
  return false;
}

// Returns the configurations that compute `shape`, the best first, without repetitions. The
// fallbacks of the library, whose knobs it chooses itself, come last. Compiling an engine at run
// time takes seconds, so such engines are used only if there is no other.
kj::Array<Descriptor> configurations(
    const CudnnTarget& target, const ConvolutionProblem& shape, Direction direction) {
  auto graph = graphFor(target, shape, direction);
  kj::Vector<Descriptor> ready, others;
  kj::HashSet<kj::String> names;
  for (auto mode: {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (auto& proposal: proposals(target, graph, mode)) {
      auto name = nameOf(proposal);
      if (!isWelcome(proposal, shape) || names.contains(name)) continue;
      names.insert(kj::mv(name));
      auto& list = isCompiledAtRunTime(proposal) ? others : ready;
      list.add(kj::mv(proposal));
    }
  }
  return (ready.size() > 0 ? ready : others).releaseAsArray();
}

}  // namespace

Descriptor describedDevice(kj::StringPtr json) {
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, json.asArray());
  properties.finalize();
  return properties;
}

// ---- plans

CudnnPlan::CudnnPlan(Descriptor plan, Direction direction, kj::String name, kj::String notes)
    : plan(kj::mv(plan)),
      direction(direction),
      nameText(kj::mv(name)),
      notesText(kj::mv(notes)),
      workspaceSize_bytes(this->plan.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)) {}

kj::Maybe<kj::Own<CudnnPlan>> CudnnPlan::tryToMake(
    const CudnnTarget& target, const Descriptor& configuration, Direction direction) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  KJ_IF_MAYBE(handle, target.tryGet<cudnnHandle_t>()) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, *handle);
  }
  describe(target, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  if (plan.tryToFinalize() != nullptr) return nullptr;
  return kj::heap<CudnnPlan>(
      kj::mv(plan), direction, nameOf(configuration), notesOf(engineOf(configuration)));
}

kj::Maybe<kj::String> CudnnPlan::run(
    const Handles& handles, const void* a, const void* b, void* c, void* workspace) {
  auto operands = operandsOf(direction);
  const int64_t names[] = {int64_t(operands.a), int64_t(operands.b), int64_t(operands.c)};
  void* const places[] = {const_cast<void*>(a), const_cast<void*>(b), c};
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, kj::ArrayPtr<const int64_t>(names));
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, kj::ArrayPtr<void* const>(places));
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  return refusal(
      cudnnBackendExecute(handles.cudnn, plan.raw(), pack.raw()), kj::str("run ", nameText));
}

kj::String CudnnPlan::json() const {
  auto text = plan.getAll<char>(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  return kj::heapString(text);
}

kj::Array<kj::Own<CudnnPlan>> cudnnPlans(const CudnnTarget& target, const ConvolutionProblem& shape,
    Direction direction, size_t workspaceMax_bytes, uint most) {
  kj::Vector<kj::Own<CudnnPlan>> plans;
  for (auto& configuration: configurations(target, shape, direction)) {
    if (plans.size() == most) break;
    KJ_IF_MAYBE(plan, CudnnPlan::tryToMake(target, configuration, direction)) {
      if ((*plan)->workspace_bytes() <= workspaceMax_bytes) plans.add(kj::mv(*plan));
    }
  }
  return plans.releaseAsArray();
}

kj::Maybe<kj::Own<CudnnPlan>> cudnnPlanNamed(const CudnnTarget& target,
    const ConvolutionProblem& shape, Direction direction, kj::StringPtr name) {
  if (!name.startsWith(NAME_START)) return nullptr;
  for (auto& configuration: configurations(target, shape, direction)) {
    if (nameOf(configuration) == name) {
      return CudnnPlan::tryToMake(target, configuration, direction);
    }
  }
  return nullptr;
}

}  // namespace nn::cuda
