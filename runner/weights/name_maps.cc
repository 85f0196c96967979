#include "runner/weights/name_maps.h"

#include <kj/debug.h>
#include <kj/vector.h>

namespace runner {

namespace {

using Text = kj::ArrayPtr<const char>;

// The system whose names they are. PyTorch joins layer and array by a dot, MXNet by `_`.
enum class System { TORCH, MXNET };

// The name that another system has for a layer of ours. In `ours`, `#` stands for a number and `*`
// for any letters. In `theirs`, each one stands for the same letters again, in the same order.
// There, `%` is the matched number minus 1, and `$` the number of classes.
struct Row {
  System system;
  kj::StringPtr ours;
  kj::StringPtr theirs;
};

constexpr Row ROWS[] = {
    // Networks that were written after ours, and those that we export.
    {System::TORCH, "*"_kj, "*"_kj},

    // Residual networks. For images of CIFAR-10, as torchvision writes them: chenyaofo's
    // pytorch-cifar-models. With `shortcut` and `linear`: kuangliu's pytorch-cifar, option B of
    // akamaster's pytorch_resnet_cifar10. With the activation before the sum: bearpaw's
    // pytorch-classification (preresnet.py), kuangliu's preact_resnet.py.
    {System::TORCH, "conv0"_kj, "conv1"_kj},
    {System::TORCH, "conv0_bn"_kj, "bn1"_kj},
    {System::TORCH, "stage#_unit#_conv#"_kj, "layer#.%.conv#"_kj},
    {System::TORCH, "stage#_unit#_conv#_bn"_kj, "layer#.%.bn#"_kj},
    {System::TORCH, "stage#_unit#_shortcut"_kj, "layer#.%.downsample.0"_kj},
    {System::TORCH, "stage#_unit#_shortcut"_kj, "layer#.%.shortcut.0"_kj},
    {System::TORCH, "stage#_unit#_shortcut_bn"_kj, "layer#.%.downsample.1"_kj},
    {System::TORCH, "stage#_unit#_shortcut_bn"_kj, "layer#.%.shortcut.1"_kj},
    {System::TORCH, "stage#_unit#_bn#"_kj, "layer#.%.bn#"_kj},
    {System::TORCH, "bn1"_kj, "bn"_kj},
    {System::TORCH, "fc"_kj, "linear"_kj},

    // Inception with batch norm: Cadene's pretrained-models.pytorch (bninception.py), with the
    // names of the model in Caffe.
    {System::TORCH, "conv1"_kj, "conv1_7x7_s2"_kj},
    {System::TORCH, "conv1_bn"_kj, "conv1_7x7_s2_bn"_kj},
    {System::TORCH, "conv2_reduce"_kj, "conv2_3x3_reduce"_kj},
    {System::TORCH, "conv2_reduce_bn"_kj, "conv2_3x3_reduce_bn"_kj},
    {System::TORCH, "conv2"_kj, "conv2_3x3"_kj},
    {System::TORCH, "conv2_bn"_kj, "conv2_3x3_bn"_kj},
    {System::TORCH, "in*_double3x3_reduce"_kj, "inception_*_double_3x3_reduce"_kj},
    {System::TORCH, "in*_double3x3_reduce_bn"_kj, "inception_*_double_3x3_reduce_bn"_kj},
    {System::TORCH, "in*_double3x3_0"_kj, "inception_*_double_3x3_1"_kj},
    {System::TORCH, "in*_double3x3_0_bn"_kj, "inception_*_double_3x3_1_bn"_kj},
    {System::TORCH, "in*_double3x3_1"_kj, "inception_*_double_3x3_2"_kj},
    {System::TORCH, "in*_double3x3_1_bn"_kj, "inception_*_double_3x3_2_bn"_kj},
    {System::TORCH, "in*_proj"_kj, "inception_*_pool_proj"_kj},
    {System::TORCH, "in*_proj_bn"_kj, "inception_*_pool_proj_bn"_kj},
    {System::TORCH, "in*_*"_kj, "inception_*_*"_kj},
    {System::TORCH, "fc"_kj, "last_linear"_kj},

    // airbench94.py of Jordan's cifar10-airbench.
    {System::TORCH, "whiten"_kj, "0"_kj},
    {System::TORCH, "group1_conv#"_kj, "2.conv#"_kj},
    {System::TORCH, "group1_bn#"_kj, "2.norm#"_kj},
    {System::TORCH, "group2_conv#"_kj, "3.conv#"_kj},
    {System::TORCH, "group2_bn#"_kj, "3.norm#"_kj},
    {System::TORCH, "group3_conv#"_kj, "4.conv#"_kj},
    {System::TORCH, "group3_bn#"_kj, "4.norm#"_kj},
    {System::TORCH, "head"_kj, "7"_kj},

    // MXNet's example/image-classification. Inception of 2015 (symbol_inception-bn.py):
    {System::MXNET, "conv2_reduce"_kj, "conv_conv2red"_kj},
    {System::MXNET, "conv2_reduce_bn"_kj, "bn_conv2red"_kj},
    {System::MXNET, "in*_double3x3_*_bn"_kj, "bn_*_double_3x3_*"_kj},
    {System::MXNET, "in*_double3x3_*"_kj, "conv_*_double_3x3_*"_kj},
    {System::MXNET, "in*_*_bn"_kj, "bn_*_*"_kj},
    {System::MXNET, "in*_*"_kj, "conv_*_*"_kj},
    // Inception of 2016 (symbols/inception-bn.py), which has both networks, the second one with
    // these two names for the convolutions of stride 2:
    {System::MXNET, "conv#"_kj, "conv_#"_kj},
    {System::MXNET, "conv#_bn"_kj, "bn_#"_kj},
    {System::MXNET, "conv#_reduce"_kj, "conv_#_red"_kj},
    {System::MXNET, "conv#_reduce_bn"_kj, "bn_#_red"_kj},
    {System::MXNET, "*_bn"_kj, "bn_*"_kj},
    {System::MXNET, "*"_kj, "conv_*"_kj},
    {System::MXNET, "in*_3x3"_kj, "conv_in*_conv"_kj},
    {System::MXNET, "in*_3x3_bn"_kj, "bn_in*_conv"_kj},
    // Residual networks with the activation before the sum (symbols/resnet.py):
    {System::MXNET, "data_bn"_kj, "bn_data"_kj},
    {System::MXNET, "stage#_unit#_shortcut"_kj, "stage#_unit#_sc"_kj},
    // The last layer of all of them:
    {System::MXNET, "fc"_kj, "fc1"_kj},
    {System::MXNET, "fc"_kj, "fc1_$_classes"_kj},
};

// MXNet's names for layers without a name in the script: the op, and the number of earlier ops of
// this kind.
kj::Maybe<kj::StringPtr> automaticName(const nn::Op& op) {
  if (op.is<nn::Conv2d>()) return "convolution"_kj;
  if (op.is<nn::Dense>()) return "fullyconnected"_kj;
  if (op.is<nn::BatchNorm>()) return "batchnorm"_kj;
  return nullptr;
}

// PyTorch's name for an array of a layer.
struct TorchArray {
  kj::StringPtr ours;
  kj::StringPtr theirs;
};

constexpr TorchArray TORCH_ARRAYS[] = {
    {"weight"_kj, "weight"_kj},
    {"bias"_kj, "bias"_kj},
    {"gamma"_kj, "weight"_kj},
    {"beta"_kj, "bias"_kj},
    {"moving_mean"_kj, "running_mean"_kj},
    {"moving_var"_kj, "running_var"_kj},
};

bool isDigit(char c) {
  return '0' <= c && c <= '9';
}

// More than any network has layers.
constexpr size_t DIGITS_MAX = 9;

// Whether `text` matches `pattern`. Adds what its `#` and `*` stand for to `found`, each as few
// letters as possible, and at least one.
bool matches(Text pattern, Text text, kj::Vector<Text>& found) {
  if (pattern.size() == 0) return text.size() == 0;
  auto rest = pattern.slice(1, pattern.size());
  if (pattern[0] != '#' && pattern[0] != '*') {
    return text.size() > 0 && text[0] == pattern[0] &&
           matches(rest, text.slice(1, text.size()), found);
  }
  for (size_t length = 1; length <= text.size(); length++) {
    if (pattern[0] == '#' && (length > DIGITS_MAX || !isDigit(text[length - 1]))) return false;
    found.add(text.slice(0, length));
    if (matches(rest, text.slice(length, text.size()), found)) return true;
    found.removeLast();
  }
  return false;
}

// Returns `theirs` of a row, filled in with the parts that `ours` has matched in the name of a
// layer.
kj::String filled(kj::StringPtr theirs, kj::ArrayPtr<const Text> found, kj::uint classes) {
  kj::Vector<kj::String> pieces;
  auto next = found.begin();
  for (char c: theirs) {
    if (c == '$') {
      pieces.add(kj::str(classes));
    } else if (c == '%') {
      pieces.add(kj::str(kj::heapString(*next++).parseAs<uint64_t>() - 1));
    } else if (c == '#' || c == '*') {
      pieces.add(kj::heapString(*next++));
    } else {
      pieces.add(kj::str(c));
    }
  }
  return kj::strArray(pieces, "");
}

}  // namespace

kj::Array<kj::String> namesElsewhere(const nn::Graph& graph, nn::NodeId id, kj::StringPtr name) {
  auto& node = graph.nodes[id];
  KJ_REQUIRE(name.startsWith(kj::str(node.name, "_")), name, node.name);
  auto array = name.slice(node.name.size() + 1);
  kj::Vector<kj::String> names;
  for (auto& row: ROWS) {
    kj::Vector<Text> found;
    if (!matches(row.ours, node.name, found)) continue;
    auto layer = filled(row.theirs, found, graph.classes);
    if (row.system == System::MXNET) {
      names.add(kj::str(layer, "_", array));
      continue;
    }
    for (auto& torch: TORCH_ARRAYS) {
      if (torch.ours == array) names.add(kj::str(layer, ".", torch.theirs));
    }
  }
  KJ_IF_MAYBE(op, automaticName(node.op)) {
    kj::uint before = 0;
    for (auto& other: graph.nodes.slice(0, id)) before += other.op.which() == node.op.which();
    names.add(kj::str(*op, before, "_", array));
  }
  return names.releaseAsArray();
}

bool isBookkeeping(kj::StringPtr name) {
  return name.endsWith(".num_batches_tracked");
}

}  // namespace runner
