#include "runner/export/onnx_model.h"

#include <kj/map.h>

#include <bit>

#include "configs/language/failure.h"
#include "runner/export/onnx.pb.h"
#include "runner/system/version.h"

namespace runner {

namespace {

constexpr uint OPSET = 13;
constexpr uint IR_VERSION = 8;
// protobuf's limit for a message is 2^31 - 1 bytes. Everything except the values takes far less
// than the difference.
constexpr uint64_t BYTES_MAX = (uint64_t(1) << 31) - (uint64_t(64) << 20);

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

// Gives values unique names.
class Names {
public:
  // Returns `wanted`, or the first of `wanted_2`, `wanted_3`, … that is free.
  kj::String take(kj::StringPtr wanted) {
    auto name = kj::str(wanted);
    for (uint number = 2; taken.contains(name); ++number) name = kj::str(wanted, "_", number);
    taken.insert(kj::str(name));
    return name;
  }

private:
  kj::HashSet<kj::String> taken;
};

// Writes a network node by node. Nodes come in the order in which they are computed.
class OnnxWriter {
public:
  OnnxWriter(const ExportedNetwork& network, const Preprocessing& preprocessing,
      OnnxOptions options, onnx::GraphProto& graph)
      : network(network),
        preprocessing(preprocessing),
        options(options),
        vectors(vectorsOf(network.graph)),
        values(kj::heapArray<kj::String>(network.graph.nodes.size())),
        graph(graph) {}

  void write() {
    auto& nodes = network.graph.nodes;
    auto images = names.take("images");
    auto output = names.take(options.probabilities ? "probabilities" : "logits");
    auto& input = *graph.add_input();
    auto shape = network.graph.inputShape();
    describe(input, images, {shape.channels, shape.height, shape.width});
    describe(*graph.add_output(), output, {network.graph.classes});

    values[0] = options.withPreprocessing ? normalise(kj::mv(images)) : kj::mv(images);
    auto last = network.logits();
    bool endsInVector = vectors[last];
    for (nn::NodeId i = 1; i + 1 < nodes.size(); ++i) {
      if (nodes[i].op.is<nn::Dropout>()) continue;
      bool isOutput = i == last && endsInVector && !options.probabilities;
      values[i] = isOutput ? kj::str(output) : names.take(nodes[i].name);
      writeNode(i);
    }
    auto logits = kj::str(values[last]);
    if (!endsInVector) {
      auto flat = options.probabilities ? names.take("logits") : kj::str(output);
      add("Flatten", {logits}, flat);
      logits = kj::mv(flat);
    }
    if (options.probabilities) setInt(add("Softmax", {logits}, output), "axis", 1);
  }

private:
  const ExportedNetwork& network;
  const Preprocessing& preprocessing;
  const OnnxOptions options;
  const kj::Array<bool> vectors;
  kj::Array<kj::String> values;  // the names of the nodes' outputs
  Names names;
  kj::Maybe<kj::String> imageAxes;  // the axes that turn a vector into an image of 1×1 pixels
  onnx::GraphProto& graph;

  using Inputs = std::initializer_list<kj::StringPtr>;

  static void describe(
      onnx::ValueInfoProto& value, kj::StringPtr name, std::initializer_list<uint64_t> sides) {
    value.set_name(name.cStr());
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx::TensorProto::FLOAT);
    tensor.mutable_shape()->add_dim()->set_dim_param("N");
    for (auto side: sides) tensor.mutable_shape()->add_dim()->set_dim_value(side);
  }

  // Appends a node without attributes that writes `output`. The node has the name of its output.
  onnx::NodeProto& add(kj::StringPtr type, Inputs inputs, kj::StringPtr output) {
    auto& node = *graph.add_node();
    node.set_op_type(type.cStr());
    node.set_name(output.cStr());
    for (auto input: inputs) node.add_input(input.cStr());
    node.add_output(output.cStr());
    return node;
  }

  static onnx::AttributeProto& attribute(
      onnx::NodeProto& node, kj::StringPtr name, onnx::AttributeProto::AttributeType type) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name.cStr());
    attribute.set_type(type);
    return attribute;
  }
  static void setInt(onnx::NodeProto& node, kj::StringPtr name, int64_t value) {
    attribute(node, name, onnx::AttributeProto::INT).set_i(value);
  }
  static void setFloat(onnx::NodeProto& node, kj::StringPtr name, float value) {
    attribute(node, name, onnx::AttributeProto::FLOAT).set_f(value);
  }
  static void setInts(
      onnx::NodeProto& node, kj::StringPtr name, std::initializer_list<int64_t> numbers) {
    auto& list = attribute(node, name, onnx::AttributeProto::INTS);
    for (auto number: numbers) list.add_ints(number);
  }

  // Appends a constant and returns its name.
  kj::String constant(kj::StringPtr wanted, onnx::TensorProto::DataType type,
      kj::ArrayPtr<const uint64_t> shape, kj::ArrayPtr<const kj::byte> bytes) {
    auto name = names.take(wanted);
    auto& tensor = *graph.add_initializer();
    tensor.set_name(name.cStr());
    tensor.set_data_type(type);
    for (auto side: shape) tensor.add_dims(side);
    tensor.set_raw_data(bytes.begin(), bytes.size());
    return name;
  }
  kj::String floats(
      kj::StringPtr wanted, kj::ArrayPtr<const uint64_t> shape, kj::ArrayPtr<const float> numbers) {
    return constant(wanted, onnx::TensorProto::FLOAT, shape, numbers.asBytes());
  }
  kj::String number(kj::StringPtr wanted, float value) {
    return floats(wanted, nullptr, kj::arrayPtr(&value, 1));
  }
  kj::String keyOf(const nn::Node& node, uint index) {
    auto& key = network.graph.keys[node.keys.begin + index];
    return floats(key.name, network.shapeOf(key), network.valuesOf(key));
  }
  kj::String statisticOf(const nn::Node& node, uint index) {
    auto& statistic = network.graph.statistics[node.statistics.begin + index];
    auto numbers = network.valuesOf(statistic);
    uint64_t size = numbers.size();
    return floats(statistic.name, kj::arrayPtr(&size, 1), numbers);
  }

  // Returns the value of (images - mean) · factor.
  kj::String normalise(kj::String value) {
    auto shape = network.graph.inputShape();
    uint64_t perChannel[] = {shape.channels, 1, 1};
    uint64_t perValue[] = {shape.channels, shape.height, shape.width};
    if (preprocessing.subtracts()) {
      auto mean = floats(
          "pixel_mean", preprocessing.hasMeanImage() ? perValue : perChannel, preprocessing.means);
      auto result = names.take("images_minus_mean");
      add("Sub", {value, mean}, result);
      value = kj::mv(result);
    }
    if (preprocessing.multiplies()) {
      auto factor = floats("pixel_factor", perChannel, preprocessing.factors);
      auto result = names.take("images_normalised");
      add("Mul", {value, factor}, result);
      value = kj::mv(result);
    }
    return value;
  }

  // Returns the value that `node` reads as its input number `index`, as N×C×H×W.
  kj::String imageInput(const nn::Node& node, uint index) {
    auto from = network.inputOf(node, index);
    if (!vectors[from]) return kj::str(values[from]);
    if (imageAxes == nullptr) {
      const int64_t axes[] = {2, 3};
      const uint64_t count = kj::size(axes);
      imageAxes = constant("image_axes", onnx::TensorProto::INT64, kj::arrayPtr(&count, 1),
          kj::arrayPtr(axes, count).asBytes());
    }
    auto image = names.take(kj::str(values[from], "_as_image"));
    add("Unsqueeze", {values[from], KJ_ASSERT_NONNULL(imageAxes)}, image);
    return image;
  }

  void writeNode(nn::NodeId id) {
    auto& node = network.graph.nodes[id];
    auto& output = values[id];
    auto input = [&]() { return kj::str(values[network.inputOf(node, 0)]); };
    KJ_SWITCH_ONEOF(node.op) {
      KJ_CASE_ONEOF(conv, nn::Conv2d) {
        writeConv(node, conv, output);
      }
      KJ_CASE_ONEOF(dense, nn::Dense) {
        writeDense(node, dense, output);
      }
      KJ_CASE_ONEOF(norm, nn::BatchNorm) {
        auto gamma = keyOf(node, 0), beta = keyOf(node, 1);
        auto mean = statisticOf(node, 0), variance = statisticOf(node, 1);
        auto& written = add("BatchNormalization", {input(), gamma, beta, mean, variance}, output);
        setFloat(written, "epsilon", norm.epsilon);
      }
      KJ_CASE_ONEOF(activation, nn::Activation) {
        writeActivation(activation.function, input(), output);
      }
      KJ_CASE_ONEOF(scale, nn::Scale) {
        auto factor = number(kj::str(node.name, "_factor"), scale.factor);
        add("Mul", {input(), factor}, output);
      }
      KJ_CASE_ONEOF(pool, nn::Pool) {
        writePool(node, pool, output);
      }
      KJ_CASE_ONEOF(_, nn::Add) {
        writeJoin(node, "Sum", vectors[id], output);
      }
      KJ_CASE_ONEOF(_, nn::Concat) {
        setInt(writeJoin(node, "Concat", vectors[id], output), "axis", 1);
      }
      KJ_CASE_ONEOF(_, nn::Input) {
        KJ_UNREACHABLE;
      }
      KJ_CASE_ONEOF(_, nn::Dropout) {
        KJ_UNREACHABLE;
      }
      KJ_CASE_ONEOF(_, nn::SoftmaxCrossEntropy) {
        KJ_UNREACHABLE;
      }
    }
  }

  void writeConv(const nn::Node& node, const nn::Conv2d& conv, kj::StringPtr output) {
    auto weight = keyOf(node, 0);
    auto& written = add("Conv", {imageInput(node, 0), weight}, output);
    if (conv.bias) written.add_input(keyOf(node, 1).cStr());
    setInts(written, "kernel_shape", {conv.kernel, conv.kernel});
    setInts(written, "strides", {conv.stride, conv.stride});
    setInts(written, "pads", {conv.pad, conv.pad, conv.pad, conv.pad});
  }

  void writeDense(const nn::Node& node, const nn::Dense& dense, kj::StringPtr output) {
    auto from = network.inputOf(node, 0);
    auto flat = kj::str(values[from]);
    if (!vectors[from]) {
      flat = names.take(kj::str(node.name, "_flat"));
      setInt(add("Flatten", {values[from]}, flat), "axis", 1);
    }
    auto weight = keyOf(node, 0);
    auto& written = add("Gemm", {flat, weight}, output);
    if (dense.bias) written.add_input(keyOf(node, 1).cStr());
    setInt(written, "transB", 1);
  }

  void writeActivation(
      nn::Activation::Function function, kj::StringPtr input, kj::StringPtr output) {
    switch (function) {
      case nn::Activation::RELU:
        add("Relu", {input}, output);
        return;
      case nn::Activation::TANH:
        add("Tanh", {input}, output);
        return;
      case nn::Activation::SIGMOID:
        add("Sigmoid", {input}, output);
        return;
      case nn::Activation::ELU:
        setFloat(add("Elu", {input}, output), "alpha", 1);
        return;
      case nn::Activation::GELU:
        writeGelu(input, output);
        return;
    }
    KJ_UNREACHABLE;
  }

  // x · (1 + erf(x / sqrt(2))) / 2. This opset has no op for it.
  void writeGelu(kj::StringPtr input, kj::StringPtr output) {
    auto name = [&](kj::StringPtr part) { return kj::str(output, "_", part); };
    auto scaled = names.take(name("scaled")), erf = names.take(name("erf"));
    auto sum = names.take(name("sum")), half = names.take(name("half"));
    add("Mul", {input, number(name("root"), 0.70710678118654752440f)}, scaled);
    add("Erf", {scaled}, erf);
    add("Add", {erf, number(name("one"), 1)}, sum);
    add("Mul", {input, number(name("factor"), 0.5f)}, half);
    add("Mul", {half, sum}, output);
  }

  // Windows over the edge get an explicit border: `ceil_mode` rounds, counts and drops windows in
  // another way than ours.
  void writePool(const nn::Node& node, const nn::Pool& pool, kj::StringPtr output) {
    bool isMax = pool.function == nn::Pool::MAX;
    auto& written = add(isMax ? "MaxPool"_kj : "AveragePool"_kj, {imageInput(node, 0)}, output);
    auto border = borderOf(pool, network.graph.nodes[node.inputs[0]].shape, node.shape);
    setInts(written, "kernel_shape", {pool.kernel, pool.kernel});
    setInts(written, "strides", {pool.stride, pool.stride});
    setInts(written, "pads", {border.top, border.left, border.bottom, border.right});
    if (!isMax) setInt(written, "count_include_pad", 1);
  }

  onnx::NodeProto& writeJoin(
      const nn::Node& node, kj::StringPtr type, bool isVector, kj::StringPtr output) {
    auto inputs = KJ_MAP(index, kj::zeroTo(node.inputs.size())) {
      return isVector ? kj::str(values[network.inputOf(node, index)]) : imageInput(node, index);
    };
    auto& written = add(type, {}, output);
    for (auto& input: inputs) written.add_input(input.cStr());
    return written;
  }
};

void addNote(onnx::ModelProto& model, kj::StringPtr key, kj::StringPtr value) {
  auto& entry = *model.add_metadata_props();
  entry.set_key(key.cStr());
  entry.set_value(value.cStr());
}

}  // namespace

kj::Array<kj::byte> onnxModel(
    const ExportedNetwork& network, const Preprocessing& preprocessing, OnnxOptions options) {
  uint64_t values = network.graph.parameters + network.graph.statisticsSize +
                    (options.withPreprocessing ? preprocessing.means.size() : 0);
  if (values * sizeof(float) > BYTES_MAX) {
    configs::fail("the network has ", values,
        " values, but an ONNX file holds at most 2 GiB. Use --to torch");
  }
  onnx::ModelProto model;
  model.set_ir_version(IR_VERSION);
  model.set_producer_name(VERSION.cStr());
  model.add_opset_import()->set_version(OPSET);
  if (network.digest.size() > 0) addNote(model, "experiment_sha256", network.digest);
  if (network.graph.classNames.size() > 0) {
    addNote(model, "class_names", kj::strArray(network.classNames(), "\n"));
  }
  addNote(model, "preprocessing", preprocessing.toJson());
  model.mutable_graph()->set_name("network");
  OnnxWriter(network, preprocessing, options, *model.mutable_graph()).write();
  auto bytes = kj::heapArray<kj::byte>(model.ByteSizeLong());
  KJ_ASSERT(model.SerializeToArray(bytes.begin(), int(bytes.size())));
  return bytes;
}

}  // namespace runner
