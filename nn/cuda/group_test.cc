#include "nn/cuda/group.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include <cmath>

#include "configs/language/diagnostics.h"
#include "configs/language/random.h"
#include "nn/cpu/cpu.h"
#include "nn/cuda/testing/host_device.h"
#include "nn/device_group.h"

namespace nn::cuda {
namespace {

constexpr uint IMAGES = 11;  // 3, 3 and 5 for three devices
constexpr uint CLASSES = 4;

Graph smallGraph() {
  configs::Diagnostics diagnostics;
  GraphBuilder builder(Shape{3, 6, 6}, diagnostics);
  auto add = [&](Op op, NodeId input) { return builder.add("", op, kj::arrayPtr(&input, 1), {}); };
  NodeId last = 0;
  for (uint i = 0; i < 2; i++) {
    last = add(Conv2d{8, 3, 1, 1, true}, last);
    last = add(BatchNorm{1e-5f, 0.9f, false}, last);
    last = add(Activation{Activation::TANH}, last);
  }
  auto graph = builder.finish(add(Dense{CLASSES, true}, last), {});
  REQUIRE(diagnostics.count() == 0);
  return graph;
}

struct Data {
  explicit Data(const Graph& graph)
      : parameters(random(graph.parameters, 1)),
        pixels(random(IMAGES * graph.inputShape().size(), 2)),
        labels(kj::heapArray<int32_t>(IMAGES)) {
    for (uint n = 0; n < IMAGES; n++) labels[n] = n == 4 ? -1 : int32_t(n % CLASSES);
  }

  static kj::Array<float> random(size_t size, uint64_t seed) {
    configs::Random random(seed, configs::Purpose::INITIAL_VALUES);
    auto values = kj::heapArray<float>(size);
    for (auto& value: values) value = float(0.3 * random.normal());
    return values;
  }

  kj::Array<float> parameters, pixels;
  kj::Array<int32_t> labels;
};

void setParameters(Program& program, const Data& data) {
  std::copy(data.parameters.begin(), data.parameters.end(), program.parameters().begin());
}

BatchResult step(const Graph& graph, Program& program, const Data& data) {
  setParameters(program, data);
  program.setBatch(data.pixels, data.labels, nullptr);
  for (uint s = 0; s < graph.segments.size(); s++) program.forward(Phase::TRAIN, s);
  backwardAll(program, graph.segments.size(), [&](uint s) {
    // After this, no device reads the parameters of the segment any more.
    auto [begin, end] = graph.segments[s].parameters;
    for (auto& value: program.parameters().slice(begin, end)) value = NAN;
  });
  return program.result();
}

void checkNear(kj::ArrayPtr<const float> found, kj::ArrayPtr<const float> expected) {
  REQUIRE(found.size() == expected.size());
  double apart = 0, whole = 0;
  for (size_t i = 0; i < found.size(); i++) {
    apart = kj::max(apart, std::fabs(double(found[i]) - expected[i]));
    whole = kj::max(whole, std::fabs(double(expected[i])));
  }
  CHECK(apart <= 1e-5 * whole);
}

// Device d does its work late if bit d of `late` is set.
kj::Own<Program> groupOf(const Graph& graph, uint count, ProgramOptions options, uint late = 0) {
  auto devices = kj::heapArrayBuilder<kj::Own<Device>>(count);
  for (uint d = 0; d < count; d++) {
    devices.add(kj::heap<HostDevice>(Late{.work = (late >> d & 1) != 0}));
  }
  return newGroup(graph, devices.finish(), options);
}

TEST_CASE("Group: several GPUs agree with as many CPUs, whichever GPUs do their work late") {
  auto graph = smallGraph();
  Data data(graph);
  for (uint count: {1, 2, 3}) {
    CAPTURE(count);
    auto targets = kj::heapArray<Target>(count);
    for (auto& target: targets) target.backend = &CPU;
    for (uint late = 0; late < 1u << count; late++) {
      CAPTURE(late);
      auto cpus = newDeviceGroup(graph, targets, {.batchSize = IMAGES});
      auto gradients = kj::heapArray<float>(graph.parameters);
      auto gpus = groupOf(graph, count, {.batchSize = IMAGES, .gradients = gradients}, late);
      // The second step finds what the first has left.
      for (uint round = 0; round < 2; round++) {
        auto found = step(graph, *gpus, data), expected = step(graph, *cpus, data);
        CHECK(found.lossSum == doctest::Approx(expected.lossSum).epsilon(1e-5));
        CHECK(found.correct == expected.correct);
        CHECK(found.images == expected.images);
        checkNear(gradients, cpus->gradients());
        checkNear(gpus->statistics(), cpus->statistics());
        checkNear(gpus->logits(), cpus->logits());
      }
    }
  }
}

TEST_CASE("Group: statistics that the caller writes reach all devices") {
  auto graph = smallGraph();
  Data data(graph);
  auto gpus = groupOf(graph, 2, {.batchSize = IMAGES});
  auto one = groupOf(graph, 1, {.batchSize = IMAGES});
  kj::Array<float> logits[2];
  for (auto* program: {gpus.get(), one.get()}) {
    step(graph, *program, data);
    for (auto& value: program->statistics()) value = 0.5;
    setParameters(*program, data);
    for (uint s = 0; s < graph.segments.size(); s++) program->forward(Phase::VALIDATE, s);
    logits[program == one.get()] = kj::heapArray<float>(program->logits());
  }
  checkNear(logits[0], logits[1]);
}

}  // namespace
}  // namespace nn::cuda
