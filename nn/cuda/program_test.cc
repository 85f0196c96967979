// Tests which work a program asks for. tests/ops/check_test shows that its results are right.
#include "nn/cuda/program.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include "configs/language/diagnostics.h"
#include "nn/cuda/testing/host_device.h"

namespace nn::cuda {
namespace {

struct Network {
  configs::Diagnostics diagnostics;
  GraphBuilder builder{Shape{8, 20, 20}, diagnostics};

  NodeId add(Op op, std::initializer_list<NodeId> inputs) {
    return builder.add("", op, kj::arrayPtr(inputs.begin(), inputs.size()), {});
  }
  NodeId conv(NodeId input, bool bias = false) { return add(Conv2d{8, 3, 1, 1, bias}, {input}); }
  NodeId norm(NodeId input) { return add(BatchNorm{1e-5f, 0.9f, false}, {input}); }
  NodeId relu(NodeId input) { return add(Activation{Activation::RELU}, {input}); }
  Graph finish(NodeId last) {
    auto graph = builder.finish(add(Dense{4, true}, {last}), {});
    REQUIRE(diagnostics.count() == 0);
    return graph;
  }
};

// A program, the device that it owns, and a batch of zeros.
struct Running {
  explicit Running(const Graph& graph, bool validatesOnly = false): graph(graph) {
    auto own = kj::heap<HostDevice>();
    device = own.get();
    program = newProgram(graph, kj::mv(own), {.batchSize = 2, .validatesOnly = validatesOnly});
    pixels = kj::heapArray<float>(2 * graph.inputShape().size());
    for (auto& pixel: pixels) pixel = 0;
    program->setBatch(pixels, labels, nullptr);
  }

  // Returns the names of the work in order, without kernels that only import or export values.
  kj::String takeWork() {
    kj::Vector<kj::StringPtr> names;
    for (auto name: device->takeWork()) {
      if (!name.startsWith("import_") && !name.startsWith("export_")) names.add(name);
    }
    return kj::strArray(names, ", ");
  }
  kj::String forward(Phase phase) {
    for (uint s = 0; s < graph.segments.size(); s++) program->forward(phase, s);
    return takeWork();
  }
  kj::String backward() {
    backwardAll(*program, graph.segments.size(), [](uint) {});
    return takeWork();
  }

  const Graph& graph;
  HostDevice* device;
  kj::Own<Program> program;
  kj::Array<float> pixels;
  const int32_t labels[2] = {0, 1};
};

TEST_CASE("program: batch norm, residual sum and activation are one pass, forward and backward") {
  Network net;
  auto a = net.relu(net.conv(0, true));
  auto graph = net.finish(net.relu(net.add(Add{}, {a, net.norm(net.conv(a))})));
  Running run(graph);
  CHECK(
      run.forward(Phase::TRAIN) ==
      "convolution forward, activate, convolution forward, sum_moments, finish_moments, normalize, "
      "convolution forward, activate, softmax_loss, sum_rows");
  CHECK(run.backward() ==
        // the dense layer
        "sum_columns, finish_columns, convolution backward filters, convolution backward data, "
        // the batch norm, with the residual's gradient, and the convolution before it
        "sum_slopes, finish_slopes, normalize_backward, convolution backward filters, "
        "convolution backward data, scale_by, "
        // the first convolution
        "activate_backward, sum_columns, finish_columns, convolution backward filters");
  CHECK(run.forward(Phase::VALIDATE) ==
        "convolution forward, activate, convolution forward, fold_moments, normalize, convolution "
        "forward, activate, softmax_loss, sum_rows");
}

TEST_CASE("program: a layer leaves its bias to the batch norm that alone reads its value") {
  Network net;
  auto graph = net.finish(net.norm(net.conv(0, true)));
  Running run(graph);
  CHECK(run.forward(Phase::TRAIN) ==
        "convolution forward, sum_moments, finish_moments, normalize, convolution forward, "
        "activate, softmax_loss, sum_rows");
  CHECK(run.backward() ==
        "sum_columns, finish_columns, convolution backward filters, convolution backward data, "
        "sum_slopes, finish_slopes, normalize_backward, convolution backward filters");
  Network read;
  auto conv = read.conv(0, true);
  auto twice = read.finish(read.add(Add{}, {read.relu(read.norm(conv)), read.relu(conv)}));
  CHECK(Running(twice).forward(Phase::TRAIN).startsWith("convolution forward, activate, "));
}

TEST_CASE("program: an output that only a concat reads is written straight into the concat") {
  Network net;
  auto left = net.relu(net.norm(net.conv(0)));
  auto right = net.add(Pool{Pool::MAX, 3, 1, 1, Pool::FLOOR}, {0});
  auto graph = net.finish(net.add(Concat{}, {left, right}));
  Running run(graph);
  CHECK(
      run.forward(Phase::TRAIN) ==
      "convolution forward, sum_moments, finish_moments, normalize, pool_max, convolution forward, "
      "activate, softmax_loss, sum_rows");
}

TEST_CASE("program: values share memory once nothing reads them any more") {
  auto bytesOf = [](uint layers) {
    Network net;
    NodeId last = 0;
    for (uint i = 0; i < layers; i++) last = net.add(Scale{2}, {last});
    return newProgram(net.finish(last), kj::heap<HostDevice>(), {.batchSize = 2})->memory_bytes();
  };
  CHECK(bytesOf(8) == bytesOf(2));
}

TEST_CASE("program: one that only validates does the same work in less memory") {
  Network network;
  auto graph = network.finish(network.relu(network.norm(network.conv(network.conv(0)))));
  Running whole(graph), validating(graph, true);
  CHECK(validating.forward(Phase::VALIDATE) == whole.forward(Phase::VALIDATE));
  CHECK(validating.program->memory_bytes() < whole.program->memory_bytes());
  CHECK_THROWS(validating.program->forward(Phase::TRAIN, 0));
}

TEST_CASE("program: a network that does not fit on the device is refused, with the way out") {
  Network net;
  auto graph = net.finish(net.conv(0));
  CHECK_THROWS_WITH(newProgram(graph, kj::heap<HostDevice>(Late{}, 1 << 20), {.batchSize = 64}),
      doctest::Contains("Make data.batch_size smaller"));
}

TEST_CASE("program: a max pool whose window has more than 256 places is refused") {
  Network net;
  auto graph = net.finish(net.add(Pool{Pool::MAX, 17, 1, 0, Pool::FLOOR}, {0}));
  CHECK_THROWS_WITH(newProgram(graph, kj::heap<HostDevice>(), {.batchSize = 2}),
      doctest::Contains("at most 16×16, but `pool"));
}

}  // namespace
}  // namespace nn::cuda
