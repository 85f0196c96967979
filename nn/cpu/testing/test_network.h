// nn/cpu/testing/test_network.h: small networks on the CPU backend, checked against the
// reference.
#pragma once

#include <doctest/doctest.h>
#include <string.h>

#include <cmath>

#include "configs/language/random.h"
#include "nn/cpu/cpu.h"
#include "nn/reference/reference.h"

namespace nn {

// Builds a network in a few words.
class Net {
public:
  explicit Net(Shape input): builder(input, diagnostics) {}

  NodeId add(Op op, NodeId input) { return add(kj::mv(op), {input, input}, 1); }
  NodeId add(Op op, std::initializer_list<NodeId> inputs, size_t count = 0) {
    auto all = kj::arrayPtr(inputs.begin(), count == 0 ? inputs.size() : count);
    return builder.add("", kj::mv(op), all, {});
  }
  NodeId conv(NodeId x, uint filters, uint kernel, uint stride, uint pad, bool bias = true) {
    return add(Conv2d{filters, kernel, stride, pad, bias}, x);
  }
  NodeId norm(NodeId x) { return add(BatchNorm{1e-3f, 0.9f, false}, x); }
  NodeId relu(NodeId x) { return add(Activation{Activation::RELU}, x); }
  NodeId tanh(NodeId x) { return add(Activation{Activation::TANH}, x); }
  NodeId dropout(NodeId x, double rate) { return add(Dropout{rate}, x); }
  NodeId factory(NodeId x, uint filters, uint kernel, uint stride, uint pad) {
    return relu(norm(conv(x, filters, kernel, stride, pad)));
  }
  NodeId maxPool(NodeId x, uint kernel, uint stride, uint pad = 0) {
    return add(Pool{Pool::MAX, kernel, stride, pad, Pool::CEIL}, x);
  }
  NodeId averagePool(NodeId x, uint kernel, uint stride, uint pad = 0) {
    return add(Pool{Pool::AVERAGE, kernel, stride, pad, Pool::CEIL}, x);
  }
  NodeId dense(NodeId x, uint units, bool bias = true) { return add(Dense{units, bias}, x); }
  Graph finish(NodeId x) {
    Graph graph = builder.finish(x, {});
    REQUIRE(diagnostics.count() == 0);
    return graph;
  }

private:
  configs::Diagnostics diagnostics;
  GraphBuilder builder;
};

// Two kinds of branches, batch norms throughout.
inline Graph smallInception() {
  Net net({3, 12, 12});
  auto simple = [&](NodeId x, uint a, uint b) {
    auto left = net.factory(x, a, 1, 1, 0);
    return net.add(Concat{}, {left, net.factory(x, b, 3, 1, 1)});
  };
  auto x = net.factory(0, 32, 3, 1, 1);
  x = simple(x, 16, 32);
  auto down = net.factory(x, 32, 3, 2, 1);
  x = net.add(Concat{}, {down, net.maxPool(x, 3, 2)});
  x = simple(x, 32, 16);
  return net.finish(net.dense(net.averagePool(x, 6, 1), 10));
}

// A batch and parameters, the same for every backend.
struct Data {
  kj::Array<float> pixels;
  kj::Array<int32_t> labels;
  kj::Array<uint64_t> draws;
  kj::Array<float> parameters;
  kj::Array<float> statistics;

  Data(const Graph& graph, uint images) {
    configs::Random random(1, configs::Purpose::ORDER);
    auto draw = [&](size_t count, double middle, double reach) {
      auto array = kj::heapArray<float>(count);
      for (auto& x: array) x = float(middle + reach * (2 * random.uniform() - 1));
      return array;
    };
    pixels = draw(images * graph.inputShape().size(), 0, 1);
    labels = kj::heapArray<int32_t>(images);
    for (auto& label: labels) label = random.below(graph.classes);
    draws = kj::heapArray<uint64_t>(images);
    for (auto& number: draws) number = random.next();
    // Gammas and biases are of all sizes, and weights keep values near 1.
    parameters = draw(graph.parameters, 0, 0.5);
    for (auto& key: graph.keys) {
      for (auto& x: parameters.slice(key.offset, key.offset + key.size)) {
        if (key.role == Key::WEIGHT) x *= float(2 * std::sqrt(3.0 / key.cols));
        if (key.role == Key::GAMMA) x += 1;
      }
    }
    statistics = draw(graph.statisticsSize, 1, 0.5);
  }
};

// One program with its data.
struct Loaded {
  const Graph& graph;
  kj::Own<Program> program;

  Loaded(const Backend& backend, const Graph& graph, const Data& data, uint threads,
      Precision precision = Precision::FP32)
      : graph(graph),
        program(backend.lower(graph,
            {.batchSize = uint(data.labels.size()), .threads = threads, .precision = precision})) {
    memcpy(program->parameters().begin(), data.parameters.begin(), 4 * graph.parameters);
    memcpy(program->statistics().begin(), data.statistics.begin(), 4 * graph.statisticsSize);
    program->setBatch(data.pixels, data.labels, data.draws);
  }
  BatchResult forward(Phase phase) {
    for (uint s = 0; s < graph.segments.size(); ++s) program->forward(phase, s);
    return program->result();
  }
  BatchResult step() {
    auto result = forward(Phase::TRAIN);
    for (uint s = graph.segments.size(); s-- > 0;) program->backward(s);
    return result;
  }
};

inline double length(kj::ArrayPtr<const float> x) {
  double sum = 0;
  for (float value: x) sum += double(value) * value;
  return std::sqrt(sum);
}

// The distance of two arrays, relative to the length of `right`.
inline double distance(
    kj::ArrayPtr<const float> left, kj::ArrayPtr<const float> right, double smallest = 1e-30) {
  REQUIRE(left.size() == right.size());
  double sum = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    sum += (double(left[i]) - right[i]) * (double(left[i]) - right[i]);
  }
  return std::sqrt(sum) / kj::max(length(right), smallest);
}

// Compares two training steps and a validation with the reference. `tolerance` is for the gradient
// of each key, relative to its own length, or to a thousandth of the whole gradient's length if
// that is more. (The gradient of a bias before a batch norm consists of rounding errors only.)
inline void checkAgainstReference(
    const Graph& graph, uint images, uint threads, double tolerance = 2e-5) {
  CAPTURE(images);
  CAPTURE(threads);
  Data data(graph, images);
  Loaded ours(CPU, graph, data, threads), theirs(REFERENCE, graph, data, 1);

  for (uint step = 0; step < 2; ++step) {
    CAPTURE(step);
    auto our = ours.step(), their = theirs.step();
    CHECK(our.images == their.images);
    CHECK(our.correct == their.correct);
    CHECK(our.lossSum == doctest::Approx(their.lossSum).epsilon(1e-5));
    CHECK(distance(ours.program->logits(), theirs.program->logits()) < 1e-5);
    double whole = length(theirs.program->gradients());
    for (auto& key: graph.keys) {
      auto part = [&](Loaded& loaded) {
        return loaded.program->gradients().slice(key.offset, key.offset + key.size);
      };
      CAPTURE(key.name.cStr());
      CHECK(distance(part(ours), part(theirs), 1e-3 * whole) < tolerance);
    }
    if (graph.statisticsSize > 0) {
      CHECK(distance(ours.program->statistics(), theirs.program->statistics()) < 1e-5);
    }
  }
  CHECK(ours.forward(Phase::VALIDATE).correct == theirs.forward(Phase::VALIDATE).correct);
  CHECK(distance(ours.program->logits(), theirs.program->logits()) < 1e-5);
}

inline void checkWithThreads(const Graph& graph, double tolerance = 2e-5) {
  checkAgainstReference(graph, 8, 1, tolerance);
  checkAgainstReference(graph, 7, 3, tolerance);
}

// Compares two steps and a validation in bfloat16 with the reference. tests/ops/check_test.cc
// explains the tolerances. Gradients here are those of a whole network, so that errors at the edges
// of ReLUs partly cancel out.
inline void checkBf16(const Graph& graph, uint images, uint threads, double tolerance) {
  CAPTURE(images);
  CAPTURE(threads);
  Data data(graph, images);
  Loaded ours(CPU, graph, data, threads, Precision::BF16), theirs(REFERENCE, graph, data, 1);
  for (uint step = 0; step < 2; ++step) {
    CAPTURE(step);
    auto our = ours.step(), their = theirs.step();
    CHECK(our.lossSum == doctest::Approx(their.lossSum).epsilon(2e-2));
    CHECK(distance(ours.program->logits(), theirs.program->logits()) < 2e-2);
    CHECK(distance(ours.program->gradients(), theirs.program->gradients()) < tolerance);
    if (graph.statisticsSize > 0) {
      CHECK(distance(ours.program->statistics(), theirs.program->statistics()) < 3e-3);
    }
  }
  ours.forward(Phase::VALIDATE);
  theirs.forward(Phase::VALIDATE);
  CHECK(distance(ours.program->logits(), theirs.program->logits()) < 2e-2);
}

}  // namespace nn
