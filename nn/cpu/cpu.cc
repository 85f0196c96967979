#include "nn/cpu/cpu.h"

#include <kj/debug.h>
#include <omp.h>

#include <dnnl.hpp>
#include <utility>

#include "configs/language/failure.h"
#include "nn/cpu/barrier.h"
#include "nn/cpu/lowering.h"
#include "nn/loops/floats.h"

namespace nn {
namespace cpu {
namespace {

bool has(dnnl::cpu_isa level) {
  auto bits = uint(dnnl::get_effective_cpu_isa());
  return (bits & uint(level)) == uint(level);
}

// Whether groups of 16 images keep two threads busy for less time than groups of 32, or at least
// take less work in all: the last group may not be full. Where they do not, groups of 32 are up to
// 7 % faster. The number of threads does not count, because one thread and two must give the same
// bits.
bool winsBySmallGroups(uint images) {
  auto costs = [&](uint group) {
    uint groups = Batch{images, group}.groups();
    return std::pair((groups + 1) / 2 * group, groups * group);
  };
  return costs(16) < costs(32);
}

const Kernels& kernelsFor(Element element, uint images) {
  auto level = instructionSet();
  if (level == AVX2) return AVX2_KERNELS;
  if (level != AMX || element != Element::BFLOAT16) return AVX512_KERNELS;
  // Less than half a group would cost more than it gains.
  constexpr uint IMAGES_MIN = 8;
  if (images < IMAGES_MIN) return AVX512_KERNELS;
  bool isSmall = winsBySmallGroups(images);
  auto& native = isSmall ? AMX_KERNELS_16 : AMX_KERNELS_32;
  auto& emulated = isSmall ? EMULATED_AMX_KERNELS_16 : EMULATED_AMX_KERNELS_32;
  return hasAmx() ? native : emulated;
}

Element elementOf(Precision precision) {
  if (precision == Precision::AUTO) precision = automaticPrecision(instructionSet());
  requirePrecision(precision);
  return precision == Precision::BF16 ? Element::BFLOAT16 : Element::FLOAT32;
}

// While it lives, the calling thread's OpenMP regions have one thread: for oneDNN, whose primitives
// must be made and executed so.
class OneThread {
public:
  OneThread(): before(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() noexcept(false) { omp_set_num_threads(before); }
  KJ_DISALLOW_COPY(OneThread);

private:
  int before;
};

class CpuProgram final: public Program {
public:
  CpuProgram(const Graph& graph, ProgramOptions options)
      : graph(graph),
        images(options.batchSize),
        lanes(kj::max(1u, kj::min(options.threads, options.batchSize))),
        hasDropout(droppingNodes(graph).size() > 0),
        element(elementOf(options.precision)),
        flatParameters(zeros(graph.parameters)),
        flatGradients(zerosIn(options.gradients, options.validatesOnly ? 0 : graph.parameters)),
        flatStatistics(zeros(graph.statisticsSize)),
        step{.kernels = kernelsFor(element, images)},
        training(
            options.validatesOnly ? kj::Own<ProgramPlan>() : lower(Phase::TRAIN, options.profile)),
        validation(lower(Phase::VALIDATE, nullptr)),
        batch(largest(&ProgramPlan::batch_bytes)),
        scratch_bytes(largest(&ProgramPlan::scratch_bytes)),
        scratch(scratch_bytes * lanes),
        plainLogits(zeros(size_t(images) * graph.classes)) {
    for (uint lane = 0; lane < lanes; ++lane) {
      streams.add(engine);
      streamHandles.add(streams.back().get());
    }
    step.streams = streamHandles;
    step.memory.batch = batch.begin();
    step.memory.scratch = scratch.begin();
    step.memory.scratchStride_bytes = scratch_bytes;
  }

  kj::ArrayPtr<float> parameters() override { return flatParameters; }
  kj::ArrayPtr<float> gradients() override { return flatGradients; }
  kj::ArrayPtr<float> statistics() override { return flatStatistics; }

  void setBatch(kj::ArrayPtr<const float> pixels, kj::ArrayPtr<const int32_t> labels,
      kj::ArrayPtr<const uint64_t> draws) override {
    KJ_REQUIRE(labels.size() == images && pixels.size() == images * graph.inputShape().size(),
        "a batch has the wrong size", labels.size(), pixels.size(), images);
    for (auto label: labels) {
      KJ_REQUIRE(label < int32_t(graph.classes), "a label names no class", label, graph.classes);
    }
    step.memory.pixels = pixels.begin();
    step.labels = labels.begin();
    step.draws = draws;
  }

  void forward(Phase phase, uint segment) override {
    KJ_REQUIRE(step.memory.pixels != nullptr, "a step needs a batch: call setBatch() first");
    if (phase == Phase::TRAIN && hasDropout) {
      KJ_REQUIRE(step.draws.size() == images, "dropout needs a number for each row",
          step.draws.size(), images);
    }
    last = phase == Phase::TRAIN ? training.get() : validation.get();
    KJ_REQUIRE(last != nullptr, "this program only validates");
    auto& part = last->segments[segment];
    run(part.prepareForward, part.forward);
  }

  void backward(uint segment) override {
    KJ_REQUIRE(
        last != nullptr && last == training.get(), "backward() follows forward() of training");
    auto& part = last->segments[segment];
    run(part.prepareBackward, part.backward);
  }

  BatchResult result() const override {
    KJ_REQUIRE(last != nullptr, "result() follows forward()");
    BatchResult result;
    auto& verdicts = last->verdicts;
    for (uint n = 0; n < images; ++n) {
      if (verdicts.correct[n] < 0) continue;
      result.lossSum += verdicts.losses[n];
      result.correct += verdicts.correct[n];
      ++result.images;
    }
    return result;
  }

  kj::ArrayPtr<const float> logits() override {
    KJ_REQUIRE(last != nullptr, "logits() follows forward()");
    const float* row = step.memory.floatsAt(last->logits, Chunk{0, 0, images, true});
    size_t stride = last->logits.stride() / step.kernels.group;
    for (uint n = 0; n < images; ++n, row += stride) {
      for (uint k = 0; k < graph.classes; ++k) plainLogits[n * graph.classes + k] = row[k];
    }
    return plainLogits;
  }

  uint64_t memory_bytes() const override {
    size_t flat =
        flatParameters.size() + flatGradients.size() + flatStatistics.size() + plainLogits.size();
    return flat * sizeof(float) + batch.bytes() + scratch.bytes() +
           2 * images * (sizeof(double) + sizeof(int8_t));
  }

  // The plans of training, unless the program only validates, and of validation.
  kj::Array<const ProgramPlan*> plans() const {
    return kj::arr<const ProgramPlan*>(training.get(), validation.get());
  }

private:
  const Graph& graph;
  uint images;
  uint lanes;
  const bool hasDropout;
  const Element element;  // of values
  kj::Array<float> flatParameters;
  kj::Array<float> flatGradients;
  kj::Array<float> flatStatistics;
  Step step;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  kj::Own<ProgramPlan> training;
  kj::Own<ProgramPlan> validation;
  ProgramPlan* last = nullptr;  // of the last forward()
  // Both plans work in the same memory.
  Arena batch;
  size_t scratch_bytes;
  Arena scratch;
  kj::Array<float> plainLogits;
  kj::Vector<dnnl::stream> streams;
  kj::Vector<dnnl_stream_t> streamHandles;
  Barrier barrier{lanes};

  kj::Own<ProgramPlan> lower(Phase phase, kj::Maybe<Profile&> profile) {
    OneThread scope;
    KJ_REQUIRE(images > 0, "a batch needs at least one image");
    FlatArrays arrays = {flatParameters, flatGradients, flatStatistics};
    return planFor(
        graph, phase, images, lanes, step.kernels, element, arrays, engine.get(), profile);
  }

  // Returns the larger one of the plans.
  size_t largest(size_t ProgramPlan::*bytes) const {
    size_t own = validation.get()->*bytes;
    return training.get() == nullptr ? own : kj::max(training.get()->*bytes, own);
  }

  using BatchTasks = kj::Vector<kj::Own<BatchTask>>;

  void run(BatchTasks& first, Range stages) {
    OneThread scope;
    if (lanes == 1) {
      runLane(0, first, stages);
      return;
    }
    bool isComplete = true;
    // An exception in here is a fault of the code and ends the process.
#pragma omp parallel num_threads(lanes)
    {
      omp_set_num_threads(1);
      if (uint(omp_get_num_threads()) == lanes) {
        runLane(omp_get_thread_num(), first, stages);
      } else if (omp_get_thread_num() == 0) {
        isComplete = false;
      }
    }
    KJ_REQUIRE(isComplete,
        "device cpu: OpenMP gave fewer threads than cluster.threads_per_worker asks for. Is "
        "OMP_THREAD_LIMIT set?",
        lanes);
  }

  void runLane(uint lane, BatchTasks& first, Range stages) {
    runTogether(lane, first);
    for (auto p = stages.begin; p < stages.end; ++p) {
      auto& stage = *last->stages[p];
      for (auto& chunk: stage.chunks[lane]) {
        for (auto& task: stage.tasks) {
          task->run(step, chunk);
          if (last->sharesChunks) meet();
        }
      }
      meet();
      runTogether(lane, stage.batchTasks);
    }
  }

  void runTogether(uint lane, BatchTasks& tasks) {
    if (tasks.size() == 0) return;
    for (auto& task: tasks) task->run(step, lane, lanes);
    meet();
  }

  void meet() {
    if (lanes > 1) barrier.meet();
  }
};

kj::Own<Program> lower(const Graph& graph, ProgramOptions options) {
  return kj::heap<CpuProgram>(graph, options);
}

}  // namespace
}  // namespace cpu

const Backend CPU = {
    .name = "cpu",
    .doc = "This machine's processor: oneDNN's convolutions and our own, AVX2, AVX-512 or AMX.",
    .lower = cpu::lower,
};

Precision automaticPrecision(kj::StringPtr level) {
  return level == AMX ? Precision::BF16 : Precision::FP32;
}

void requirePrecision(Precision precision) {
  if (precision == Precision::TF32 || precision == Precision::FP16) {
    configs::fail("train.precision = \"", precision == Precision::TF32 ? "tf32" : "fp16",
        "\" is for GPUs. Choose \"fp32\", or \"bf16\" if the processor has AVX512_BF16");
  }
  if (precision == Precision::FP32 || precision == Precision::AUTO ||
      cpu::has(dnnl::cpu_isa::avx512_core_bf16))
    return;
  configs::fail(
      "train.precision = \"bf16\" needs a processor with AVX512_BF16. This one does not have it, "
      "or "
      "DNNL_MAX_CPU_ISA forbids it. Emulated bfloat16 would be four times slower than \"fp32\". "
      "Choose \"fp32\"");
}

kj::Array<kj::String> convolutionImplementations(const Graph& graph, ProgramOptions options) {
  cpu::CpuProgram program(graph, options);
  kj::Vector<kj::String> names;
  for (auto* plan: program.plans()) {
    for (auto& convolution: plan->convolutions) {
      for (auto& name: convolution->implementations()) names.add(kj::str(name));
    }
  }
  return names.releaseAsArray();
}

}  // namespace nn
