#include "runner/export/onnx_model.h"

#include <doctest/doctest.h>
#include <string.h>

#include <cmath>

#include "io/testing/scratch.h"
#include "runner/export/onnx.pb.h"
#include "tests/text.h"

namespace runner {
namespace {

// A network with values that count up from 0.
struct Counted {
  nn::Graph graph;
  kj::Array<float> parameters, statistics;

  explicit Counted(nn::Graph&& built): graph(kj::mv(built)) {
    parameters = kj::heapArray<float>(graph.parameters);
    statistics = kj::heapArray<float>(graph.statisticsSize);
    for (auto i: kj::indices(parameters)) parameters[i] = i;
    for (auto i: kj::indices(statistics)) statistics[i] = 1000 + i;
  }

  onnx::ModelProto model(const Preprocessing& steps = {}, OnnxOptions options = {}) const {
    auto bytes = onnxModel({graph, parameters, statistics, "12ab"}, steps, options);
    onnx::ModelProto model;
    REQUIRE(model.ParseFromArray(bytes.begin(), bytes.size()));
    return model;
  }
};

Counted chain(nn::Shape input, kj::ArrayPtr<const nn::Op> ops) {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder(input, diagnostics);
  nn::NodeId last = 0;
  for (auto& op: ops) last = builder.add("", op, kj::arrayPtr(&last, 1), {});
  auto graph = builder.finish(last, {});
  REQUIRE(diagnostics.count() == 0);
  return Counted(kj::mv(graph));
}

// Returns nodes as lines `Type(inputs) → output {attributes}`.
kj::String textOf(const onnx::ModelProto& model) {
  kj::Vector<kj::String> lines;
  for (auto& node: model.graph().node()) {
    kj::Vector<kj::String> inputs, attributes;
    for (auto& input: node.input()) inputs.add(kj::str(input.c_str()));
    for (auto& each: node.attribute()) {
      kj::Vector<kj::String> values;
      for (auto i: each.ints()) values.add(kj::str(i));
      if (each.type() == onnx::AttributeProto::INT) values.add(kj::str(each.i()));
      if (each.type() == onnx::AttributeProto::FLOAT) values.add(kj::str(each.f()));
      attributes.add(kj::str(" ", each.name().c_str(), "=", kj::strArray(values, ",")));
    }
    REQUIRE(node.output_size() == 1);
    lines.add(kj::str(node.op_type().c_str(), "(", kj::strArray(inputs, ", "), ") → ",
        node.output(0).c_str(), kj::strArray(attributes, ""), "\n"));
  }
  return kj::strArray(lines, "");
}

// Returns the values of a constant.
kj::Array<float> valuesOf(const onnx::ModelProto& model, kj::StringPtr name) {
  for (auto& tensor: model.graph().initializer()) {
    if (name != tensor.name().c_str()) continue;
    auto values = kj::heapArray<float>(tensor.raw_data().size() / sizeof(float));
    memcpy(values.begin(), tensor.raw_data().data(), tensor.raw_data().size());
    return values;
  }
  KJ_FAIL_REQUIRE("no such constant", name);
}

TEST_CASE("ONNX: a model has the layers with weights, and names their arrays") {
  nn::Op ops[] = {nn::Conv2d{2, 3, 2, 1, false}, nn::BatchNorm{1e-3f, 0.9f, true},
      nn::Activation{nn::Activation::RELU}, nn::Dropout{0.5}, nn::Dense{4, true}};
  auto network = chain({3, 5, 5}, ops);
  auto model = network.model();
  CHECK(textOf(model) ==
        "Conv(images, conv2d0_weight) → conv2d0 kernel_shape=3,3 strides=2,2 pads=1,1,1,1\n"
        "BatchNormalization(conv2d0, batch_norm0_gamma, batch_norm0_beta, "
        "batch_norm0_moving_mean, batch_norm0_moving_var) → batch_norm0 epsilon=0.001\n"
        "Relu(batch_norm0) → activation0\n"
        "Flatten(activation0) → dense0_flat axis=1\n"
        "Gemm(dense0_flat, dense0_weight, dense0_bias) → logits transB=1\n");
  CHECK(valuesOf(model, "conv2d0_weight")[53] == 53);
  CHECK(valuesOf(model, "batch_norm0_gamma")[1] == 1);
  CHECK(valuesOf(model, "batch_norm0_beta")[1] == 57);
  CHECK(valuesOf(model, "batch_norm0_moving_var")[0] == 1002);
  CHECK(model.ir_version() == 8);
  CHECK(model.opset_import(0).version() == 13);
}

TEST_CASE("ONNX: a model has the activations and scales") {
  nn::Op ops[] = {nn::Activation{nn::Activation::TANH}, nn::Activation{nn::Activation::SIGMOID},
      nn::Activation{nn::Activation::ELU}, nn::Activation{nn::Activation::GELU}, nn::Scale{0.25f}};
  auto model = chain({3, 1, 1}, ops).model();
  CHECK(textOf(model) ==
        "Tanh(images) → activation0\n"
        "Sigmoid(activation0) → activation1\n"
        "Elu(activation1) → activation2 alpha=1\n"
        "Mul(activation2, activation3_root) → activation3_scaled\n"
        "Erf(activation3_scaled) → activation3_erf\n"
        "Add(activation3_erf, activation3_one) → activation3_sum\n"
        "Mul(activation2, activation3_factor) → activation3_half\n"
        "Mul(activation3_half, activation3_sum) → activation3\n"
        "Mul(activation3, scale0_factor) → scale0\n"
        "Flatten(scale0) → logits\n");
  CHECK(valuesOf(model, "activation3_root")[0] == doctest::Approx(std::sqrt(0.5)));
  CHECK(valuesOf(model, "scale0_factor")[0] == 0.25f);
}

TEST_CASE("ONNX: pools have explicit borders, which averages include") {
  nn::Op ops[] = {nn::Pool{nn::Pool::MAX, 3, 2, 0, nn::Pool::CEIL},
      nn::Pool{nn::Pool::AVERAGE, 3, 1, 1, nn::Pool::CEIL}, nn::Dense{2, false}};
  CHECK(textOf(chain({1, 8, 5}, ops).model()) ==
        "MaxPool(images) → pool0 kernel_shape=3,3 strides=2,2 pads=0,0,1,0\n"
        "AveragePool(pool0) → pool1 kernel_shape=3,3 strides=1,1 pads=1,1,1,1 "
        "count_include_pad=1\n"
        "Flatten(pool1) → dense0_flat axis=1\n"
        "Gemm(dense0_flat, dense0_weight) → logits transB=1\n");
}

TEST_CASE("ONNX: vectors become images in sums and concats that have an image as another input") {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({2, 4, 4}, diagnostics);
  nn::NodeId images = 0;
  auto dense = builder.add("fc", nn::Dense{2, false}, kj::arrayPtr(&images, 1), {});
  auto pool = builder.add(
      "pool", nn::Pool{nn::Pool::AVERAGE, 4, 1, 0, nn::Pool::FLOOR}, kj::arrayPtr(&images, 1), {});
  nn::NodeId three[] = {dense, pool, dense};
  auto sum = builder.add("sum", nn::Add{}, three, {});
  nn::NodeId two[] = {sum, dense};
  Counted network(builder.finish(builder.add("logits", nn::Concat{}, two, {}), {}));
  REQUIRE(diagnostics.count() == 0);
  CHECK(textOf(network.model()) ==
        "Flatten(images) → fc_flat axis=1\n"
        "Gemm(fc_flat, fc_weight) → fc transB=1\n"
        "AveragePool(images) → pool kernel_shape=4,4 strides=1,1 pads=0,0,0,0 "
        "count_include_pad=1\n"
        "Unsqueeze(fc, image_axes) → fc_as_image\n"
        "Unsqueeze(fc, image_axes) → fc_as_image_2\n"
        "Sum(fc_as_image, pool, fc_as_image_2) → sum\n"
        "Unsqueeze(fc, image_axes) → fc_as_image_3\n"
        "Concat(sum, fc_as_image_3) → logits_2 axis=1\n"
        "Flatten(logits_2) → logits\n");
}

TEST_CASE("ONNX: a model describes its input, output and metadata") {
  nn::Op ops[] = {nn::Dense{2, false}};
  auto network = chain({3, 4, 5}, ops);
  network.graph.classNames = kj::arr(kj::str("cat"), kj::str("dog"));
  Preprocessing steps{
      .crop = 4, .means = kj::arr(1.5f, 2.5f, 3.5f), .factors = kj::arr(0.5f, 0.5f, 0.5f)};
  auto model = network.model(steps);
  auto& input = model.graph().input(0);
  CHECK(input.name() == "images");
  auto& shape = input.type().tensor_type().shape();
  CHECK(shape.dim(0).dim_param() == "N");
  CHECK(shape.dim(3).dim_value() == 5);
  CHECK(model.graph().output(0).name() == "logits");
  REQUIRE(model.metadata_props_size() == 3);
  CHECK(model.metadata_props(0).value() == "12ab");
  CHECK(model.metadata_props(1).key() == "class_names");
  CHECK(model.metadata_props(1).value() == "cat\ndog");
  CHECK(model.metadata_props(2).value() ==
        R"({"crop":4,"mean":[1.5,2.5,3.5],"factor":[0.5,0.5,0.5]})");

  auto both = network.model(steps, {.withPreprocessing = true, .probabilities = true});
  CHECK(both.graph().output(0).name() == "probabilities");
  CHECK(textOf(both) ==
        "Sub(images, pixel_mean) → images_minus_mean\n"
        "Mul(images_minus_mean, pixel_factor) → images_normalised\n"
        "Flatten(images_normalised) → dense0_flat axis=1\n"
        "Gemm(dense0_flat, dense0_weight) → dense0 transB=1\n"
        "Softmax(dense0) → probabilities axis=1\n");
}

TEST_CASE("ONNX: a network of more than 2 GiB is refused, and the message says what to do") {
  nn::Op ops[] = {nn::Dense{1u << 15, false}, nn::Dense{1u << 14, false}};
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({1, 1, 1}, diagnostics);
  nn::NodeId last = 0;
  for (auto& op: ops) last = builder.add("", op, kj::arrayPtr(&last, 1), {});
  auto graph = builder.finish(last, {});
  // The refusal comes before any value is read.
  CHECK(io::thrownBy([&]() {
    onnxModel({graph, nullptr, nullptr, nullptr}, {}, {});
  }) == "the network has 536903680 values, but an ONNX file holds at most 2 GiB. Use --to torch");
}

}  // namespace
}  // namespace runner
