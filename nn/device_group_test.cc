#include "nn/device_group.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

#include <cmath>

#include "configs/language/random.h"
#include "nn/cpu/cpu.h"

namespace nn {
namespace {

enum class With { NOTHING, BATCH_NORM, DROPOUT };

// A convolution, tanh, and two dense layers: several segments. Batch norm follows the convolution,
// and dropout is between the dense layers.
Graph smallGraph(With more) {
  configs::Diagnostics diagnostics;
  GraphBuilder builder({1, 6, 6}, diagnostics);
  NodeId x = 0;
  auto add = [&](Op op) { x = builder.add("", kj::mv(op), kj::arrayPtr(&x, 1), {}); };
  add(Conv2d{.filters = 4, .kernel = 3, .stride = 1, .pad = 1, .bias = true});
  if (more == With::BATCH_NORM)
    add(BatchNorm{.epsilon = 1e-3f, .momentum = 0.9f, .fixedGamma = false});
  add(Activation{Activation::TANH});
  add(Dense{.units = 12, .bias = true});
  add(Activation{Activation::TANH});
  if (more == With::DROPOUT) add(Dropout{.rate = 0.5});
  add(Dense{.units = 5, .bias = true});
  auto graph = builder.finish(x, {});
  REQUIRE(diagnostics.count() == 0);
  REQUIRE(graph.segments.size() >= 2);
  return graph;
}

struct Data {
  kj::Array<float> pixels;
  kj::Array<int32_t> labels;
  kj::Array<uint64_t> draws;
  kj::Array<float> parameters;

  Data(const Graph& graph, uint images, uint64_t seed = 1) {
    configs::Random random(seed, configs::Purpose::ORDER);
    auto draw = [&](size_t count) {
      auto array = kj::heapArray<float>(count);
      for (auto& x: array) x = float(random.uniform() - 0.5);
      return array;
    };
    pixels = draw(images * graph.inputShape().size());
    labels = kj::heapArray<int32_t>(images);
    for (auto& label: labels) label = random.below(graph.classes);
    draws = kj::heapArray<uint64_t>(images);
    for (auto& number: draws) number = random.next();
    parameters = draw(graph.parameters);
  }
};

void put(kj::ArrayPtr<const float> values, kj::ArrayPtr<float> array) {
  REQUIRE(values.size() == array.size());
  memcpy(array.begin(), values.begin(), values.size() * sizeof(float));
}

BatchResult forward(const Graph& graph, Program& program, Phase phase) {
  for (uint s = 0; s < graph.segments.size(); ++s) program.forward(phase, s);
  return program.result();
}

BatchResult step(const Graph& graph, Program& program, const Data& data) {
  put(data.parameters, program.parameters());
  program.setBatch(data.pixels, data.labels, data.draws);
  auto result = forward(graph, program, Phase::TRAIN);
  for (uint s = graph.segments.size(); s-- > 0;) program.backward(s);
  return result;
}

kj::Own<Program> group(const Graph& graph, uint devices, uint images, uint threads = 1) {
  auto targets = kj::heapArray<Target>(devices);
  for (auto& target: targets) target.backend = &CPU;
  return newDeviceGroup(graph, targets, {.batchSize = images, .threads = threads});
}

bool near(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  REQUIRE(a.size() == b.size());
  double apart = 0, whole = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    apart = kj::max(apart, std::fabs(double(a[i]) - b[i]));
    whole = kj::max(whole, std::fabs(double(b[i])));
  }
  REQUIRE(whole > 0);
  return apart <= 1e-5 * whole;
}

bool same(kj::ArrayPtr<const float> a, kj::ArrayPtr<const float> b) {
  return a.size() == b.size() && memcmp(a.begin(), b.begin(), a.asBytes().size()) == 0;
}

TEST_CASE("rowsOf: devices get equal slices one after another, and the last also gets the rest") {
  CHECK(rowsOf(0, 3, 11).begin == 0);
  CHECK(rowsOf(0, 3, 11).end == 3);
  CHECK(rowsOf(1, 3, 11).end == 6);
  CHECK(rowsOf(2, 3, 11).begin == 6);
  CHECK(rowsOf(2, 3, 11).end == 11);
  CHECK_THROWS(rowsOf(0, 3, 2));
}

TEST_CASE("DeviceGroup: several devices compute the same as one, up to the order of sums") {
  auto graph = smallGraph(With::NOTHING);
  for (uint images: {8, 11}) {
    Data data(graph, images);
    data.labels[2] = -1;
    auto one = CPU.lower(graph, {.batchSize = images});
    auto expected = step(graph, *one, data);
    for (uint devices: {1, 2, 3, 5}) {
      for (uint threads: {1, 2}) {
        CAPTURE(images);
        CAPTURE(devices);
        auto several = group(graph, devices, images, threads);
        auto result = step(graph, *several, data);
        CHECK(result.images == images - 1);
        CHECK(result.correct == expected.correct);
        CHECK(result.lossSum == doctest::Approx(expected.lossSum).epsilon(1e-5));
        CHECK(near(several->logits(), one->logits()));
        CHECK(near(several->gradients(), one->gradients()));
        CHECK(several->memory_bytes() > one->memory_bytes());
      }
    }
  }
}

TEST_CASE("DeviceGroup: dropout removes the same elements of each row as on one device") {
  auto graph = smallGraph(With::DROPOUT);
  Data data(graph, 11);
  auto one = CPU.lower(graph, {.batchSize = 11});
  step(graph, *one, data);
  auto several = group(graph, 3, 11);
  step(graph, *several, data);
  CHECK(near(several->logits(), one->logits()));
  CHECK(near(several->gradients(), one->gradients()));
  for (auto& number: data.draws) ++number;
  step(graph, *several, data);
  CHECK_FALSE(near(several->logits(), one->logits()));
}

TEST_CASE("DeviceGroup: gradients of the devices are added in their order") {
  constexpr uint IMAGES = 11, DEVICES = 3;
  auto graph = smallGraph(With::BATCH_NORM);
  Data data(graph, IMAGES);
  auto sum = kj::heapArray<float>(graph.parameters);
  for (uint d = 0; d < DEVICES; ++d) {
    auto rows = rowsOf(d, DEVICES, IMAGES);
    auto program = CPU.lower(graph, {.batchSize = uint(rows.size())});
    size_t size = graph.inputShape().size();
    put(data.parameters, program->parameters());
    program->setBatch(data.pixels.slice(rows.begin * size, rows.end * size),
        data.labels.slice(rows.begin, rows.end), nullptr);
    forward(graph, *program, Phase::TRAIN);
    for (uint s = graph.segments.size(); s-- > 0;) program->backward(s);
    for (auto i: kj::indices(sum)) {
      auto part = program->gradients()[i];
      sum[i] = d == 0 ? part : sum[i] + part;
    }
  }
  auto several = group(graph, DEVICES, IMAGES);
  for (uint again = 0; again < 20; ++again) {
    step(graph, *several, data);
    CHECK(same(several->gradients(), sum));
  }
}

TEST_CASE("DeviceGroup: after backward of a segment its parameters may be overwritten") {
  auto graph = smallGraph(With::NOTHING);
  Data data(graph, 8), other(graph, 8, 2);
  auto several = group(graph, 2, 8);
  step(graph, *several, data);
  auto expected = kj::heapArray<float>(several->gradients().asConst());
  for (uint again = 0; again < 20; ++again) {
    put(data.parameters, several->parameters());
    several->setBatch(data.pixels, data.labels, data.draws);
    forward(graph, *several, Phase::TRAIN);
    for (uint s = graph.segments.size(); s-- > 0;) {
      several->backward(s);
      auto [begin, end] = graph.segments[s].parameters;
      put(other.parameters.slice(begin, end), several->parameters().slice(begin, end));
    }
    CHECK(same(several->gradients(), expected));
  }
  several->setBatch(other.pixels, other.labels, other.draws);
  forward(graph, *several, Phase::TRAIN);
  auto one = CPU.lower(graph, {.batchSize = 8});
  step(graph, *one, other);
  CHECK(near(several->logits(), one->logits()));
}

TEST_CASE("DeviceGroup: statistics are the mean weighted by rows, and go back to all devices") {
  constexpr uint IMAGES = 7;
  auto graph = smallGraph(With::BATCH_NORM);
  Data data(graph, IMAGES);
  auto begin = kj::heapArray<float>(graph.statisticsSize);
  for (auto i: kj::indices(begin)) begin[i] = 1 + float(i) / 16;

  // Each device alone: 3 rows and 4.
  auto mean = kj::heapArray<float>(graph.statisticsSize);
  auto sums = kj::heapArray<double>(graph.statisticsSize);
  for (auto& sum: sums) sum = 0;
  for (uint d = 0; d < 2; ++d) {
    auto rows = rowsOf(d, 2, IMAGES);
    auto program = CPU.lower(graph, {.batchSize = uint(rows.size())});
    size_t size = graph.inputShape().size();
    put(data.parameters, program->parameters());
    put(begin, program->statistics());
    program->setBatch(data.pixels.slice(rows.begin * size, rows.end * size),
        data.labels.slice(rows.begin, rows.end), nullptr);
    forward(graph, *program, Phase::TRAIN);
    for (auto i: kj::indices(sums)) sums[i] += program->statistics()[i] * double(rows.size());
  }
  for (auto i: kj::indices(mean)) mean[i] = sums[i] / IMAGES;

  auto several = group(graph, 2, IMAGES);
  put(begin, several->statistics());
  CHECK(same(several->statistics(), begin));
  step(graph, *several, data);
  CHECK(same(several->statistics(), mean));
  CHECK_FALSE(same(mean, begin));

  // Validation uses the statistics that were written for all rows, and does not change them.
  put(begin, several->statistics());
  forward(graph, *several, Phase::VALIDATE);
  auto one = CPU.lower(graph, {.batchSize = IMAGES});
  put(data.parameters, one->parameters());
  put(begin, one->statistics());
  one->setBatch(data.pixels, data.labels, data.draws);
  forward(graph, *one, Phase::VALIDATE);
  CHECK(near(several->logits(), one->logits()));
  CHECK(same(several->statistics(), begin));
}

// A device that breaks down in every forward.
class BrokenProgram final: public Program {
public:
  kj::ArrayPtr<float> parameters() override { return values; }
  kj::ArrayPtr<float> gradients() override { return values; }
  kj::ArrayPtr<float> statistics() override { return nullptr; }
  void setBatch(kj::ArrayPtr<const float>, kj::ArrayPtr<const int32_t>,
      kj::ArrayPtr<const uint64_t>) override {}
  void forward(Phase, uint) override { KJ_FAIL_REQUIRE("the device broke down"); }
  void backward(uint) override {}
  BatchResult result() const override { return {}; }
  kj::ArrayPtr<const float> logits() override { return nullptr; }
  uint64_t memory_bytes() const override { return 0; }

  explicit BrokenProgram(const Graph& graph): values(kj::heapArray<float>(graph.parameters)) {}

private:
  kj::Array<float> values;
};

TEST_CASE(
    "DeviceGroup: the next call that waits throws the exception of a device, and the group ends") {
  constexpr Backend BROKEN = {.name = "broken",
      .doc = "",
      .lower = [](const Graph& graph, ProgramOptions) -> kj::Own<Program> {
        return kj::heap<BrokenProgram>(graph);
      }};
  auto graph = smallGraph(With::NOTHING);
  Data data(graph, 8);
  Target targets[] = {{&CPU}, {&BROKEN}};
  auto several = newDeviceGroup(graph, targets, {.batchSize = 8});
  several->setBatch(data.pixels, data.labels, data.draws);
  several->forward(Phase::TRAIN, 0);
  CHECK_THROWS_WITH(several->result(), doctest::Contains("the device broke down"));
  CHECK_THROWS(several->backward(0));
}

TEST_CASE("DeviceGroup: can be destroyed at any time") {
  auto graph = smallGraph(With::NOTHING);
  Data data(graph, 8);
  for (uint segments = 0; segments <= graph.segments.size(); ++segments) {
    auto several = group(graph, 4, 8);
    put(data.parameters, several->parameters());
    several->setBatch(data.pixels, data.labels, data.draws);
    for (uint s = 0; s < segments; ++s) several->forward(Phase::TRAIN, s);
  }
}

}  // namespace
}  // namespace nn
