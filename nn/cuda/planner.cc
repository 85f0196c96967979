#include "nn/cuda/planner.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "configs/language/failure.h"
#include "nn/chosen_plans.h"
#include "nn/cuda/handles.h"

namespace nn::cuda {

namespace {

// The limit per library. The fastest plan is among the first few that its heuristics propose.
constexpr uint MEASURED_MAX = 16;

size_t bytesOf(Element element, uint images, const BatchLayout& extent) {
  return size_t(images) * extent.height * extent.width * extent.stride * bytesOf(element);
}

}  // namespace

OperandBytes operandBytesOf(const ConvolutionProblem& shape, Direction direction) {
  auto x = bytesOf(shape.element, shape.images, shape.x);
  auto filters = bytesOf(shape.element, shape.y.channels,
      {shape.x.channels, shape.kernelHeight, shape.kernelWidth, shape.x.channels});
  switch (direction) {
    case Direction::FORWARD:
      return {x, filters, bytesOf(shape.output, shape.images, shape.y)};
    case Direction::BACKWARD_DATA:
      return {bytesOf(shape.element, shape.images, shape.y), filters, x};
    case Direction::BACKWARD_FILTERS:
      return {x, bytesOf(shape.element, shape.images, shape.y), filters};
  }
  KJ_UNREACHABLE;
}

Planner::Planner(CudnnTarget cudnn, cublasLtContext* cublasLt, kj::StringPtr deviceName,
    kj::Own<const kj::Directory> folder)
    : cudnn(kj::mv(cudnn)),
      cublasLt(cublasLt),
      surroundings(kj::str(
          deviceName, ", cuDNN ", cudnnGetVersion(), ", cuBLASLt ", cublasLtGetVersion(), ": ")),
      cache(kj::mv(folder)) {}

kj::Own<LibraryPlan> Planner::plan(const ConvolutionProblem& shape, Direction direction,
    size_t workspaceMax_bytes, Measure measure) {
  auto key = kj::str(surroundings, textOf(shape, direction));
  auto plan = choose(shape, direction, workspaceMax_bytes, measure, key);
  noteChosenPlan(key, plan->name());
  return plan;
}

kj::Own<LibraryPlan> Planner::choose(const ConvolutionProblem& shape, Direction direction,
    size_t workspaceMax_bytes, Measure measure, kj::StringPtr key) {
  auto fitting = [&](kj::Maybe<kj::StringPtr> known) -> kj::Maybe<kj::Own<LibraryPlan>> {
    KJ_IF_MAYBE(name, known) {
      KJ_IF_MAYBE(plan, named(shape, direction, *name)) {
        if ((*plan)->workspace_bytes() <= workspaceMax_bytes) return kj::mv(*plan);
      }
    }
    return nullptr;
  };
  auto wanted = wantedPlan(key);
  KJ_IF_MAYBE(plan, fitting(wanted.map([](kj::String& own) { return own.asPtr(); }))) {
    return kj::mv(*plan);
  }
  KJ_IF_MAYBE(plan, fitting(cache.find(key))) return kj::mv(*plan);

  auto text = textOf(shape, direction);
  uint most = shape.deterministic ? 1 : MEASURED_MAX;
  kj::Vector<kj::Own<LibraryPlan>> plans;
  if (cublasLt != nullptr) {
    for (auto& plan: ltPlans(cublasLt, shape, direction, workspaceMax_bytes, most)) {
      plans.add(kj::mv(plan));
    }
  }
  for (auto& plan: cudnnPlans(cudnn, shape, direction, workspaceMax_bytes, most)) {
    plans.add(kj::mv(plan));
  }
  if (plans.size() == 0) {
    configs::fail("neither cuDNN nor cuBLASLt can compute this convolution: ", text, ", with ",
        workspaceMax_bytes >> 20, " MiB of workspace. To see cuDNN's reasons, set ",
        "CUDNN_LOGLEVEL_DBG=2 and CUDNN_LOGDEST_DBG=stderr");
  }
  if (shape.deterministic) return kj::mv(plans[0]);
  auto lock = cache.lockForMeasuring();
  // Another process may have measured it meanwhile.
  KJ_IF_MAYBE(plan, fitting(cache.find(key))) return kj::mv(*plan);
  KJ_IF_MAYBE(best, fastest(plans.releaseAsArray(), measure)) {
    cache.remember(key, (*best)->name());
    return kj::mv(*best);
  }
  configs::fail("no plan that cuDNN or cuBLASLt proposes for this convolution can be run: ", text);
}

kj::Maybe<kj::Own<LibraryPlan>> Planner::named(
    const ConvolutionProblem& shape, Direction direction, kj::StringPtr name) const {
  KJ_IF_MAYBE(plan, cudnnPlanNamed(cudnn, shape, direction, name)) return kj::mv(*plan);
  if (cublasLt == nullptr) return nullptr;
  return ltPlanNamed(cublasLt, shape, direction, name);
}

}  // namespace nn::cuda
