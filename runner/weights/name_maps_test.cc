#include "runner/weights/name_maps.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/map.h>

#include "nn/network/networks.h"
#include "tests/text.h"

namespace runner {
namespace {

nn::Graph graphOf(const nn::Network& network) {
  configs::Diagnostics diagnostics;
  kj::StringPtr name = network.name;
  kj::uint side = name == "inception-bn" ? 224 : name == "airbench94" ? 32 : 28;
  nn::GraphBuilder builder({3, side, side}, diagnostics);
  auto last = nn::addLayers(builder, network.layers(10, {}), 0, nn::CONVENTIONS[0]);
  auto graph = builder.finish(last, {});
  REQUIRE(diagnostics.count() == 0);
  return graph;
}

// The names of one array of a network, with spaces between and around them.
kj::String names(kj::StringPtr network, kj::StringPtr array) {
  for (auto& row: nn::NETWORKS) {
    if (row.name != network) continue;
    auto graph = graphOf(row);
    for (auto& key: graph.keys) {
      if (key.name != array) continue;
      return kj::str(" ", kj::strArray(namesElsewhere(graph, key.node, array), " "), " ");
    }
    for (auto& statistic: graph.statistics) {
      if (statistic.name != array) continue;
      return kj::str(" ", kj::strArray(namesElsewhere(graph, statistic.node, array), " "), " ");
    }
  }
  KJ_FAIL_REQUIRE("no such array", network, array);
}

// Whether `theirs` is one of the names of `ours`.
bool has(kj::StringPtr network, kj::StringPtr ours, kj::StringPtr theirs) {
  return tests::contains(names(network, ours), kj::str(" ", theirs, " "));
}

TEST_CASE("Names: PyTorch joins our names of layers to its own names of arrays") {
  CHECK(names("lenet", "fc1_weight") == " fc1.weight conv_fc1_weight fullyconnected0_weight ");
  CHECK(has("lenet", "conv2_bias", "conv2.bias"));
  CHECK(has("lenet-bn", "conv1_bn_gamma", "conv1_bn.weight"));
  CHECK(has("lenet-bn", "conv1_bn_beta", "conv1_bn.bias"));
  CHECK(has("lenet-bn", "conv1_bn_moving_mean", "conv1_bn.running_mean"));
  CHECK(has("lenet-bn", "conv1_bn_moving_var", "conv1_bn.running_var"));
}

TEST_CASE("Names: residual networks of PyTorch count their units from 0") {
  CHECK(has("resnet-20", "conv0_weight", "conv1.weight"));
  CHECK(has("resnet-20", "conv0_bn_moving_var", "bn1.running_var"));
  CHECK(has("resnet-20", "stage1_unit1_conv1_weight", "layer1.0.conv1.weight"));
  CHECK(has("resnet-110", "stage3_unit18_conv2_bn_beta", "layer3.17.bn2.bias"));
  CHECK(has("resnet-56", "stage2_unit1_shortcut_weight", "layer2.0.downsample.0.weight"));
  CHECK(has("resnet-56", "stage2_unit1_shortcut_weight", "layer2.0.shortcut.0.weight"));
  CHECK(has("resnet-56", "stage2_unit1_shortcut_bn_gamma", "layer2.0.downsample.1.weight"));
  CHECK(has("resnet-20", "fc_bias", "linear.bias"));
  CHECK(has("resnet-18", "stage4_unit2_conv2_bn_gamma", "layer4.1.bn2.weight"));
  CHECK(has("resnet-50", "stage1_unit1_conv3_weight", "layer1.0.conv3.weight"));
  CHECK(
      has("resnet-50", "stage3_unit1_shortcut_bn_moving_var", "layer3.0.downsample.1.running_var"));
  CHECK(has("resnet-50", "fc_weight", "fc.weight"));
  CHECK(has("resnet-20-v2", "stage3_unit2_bn1_gamma", "layer3.1.bn1.weight"));
  CHECK(has("resnet-20-v2", "stage2_unit1_shortcut_weight", "layer2.0.shortcut.0.weight"));
  CHECK(has("resnet-20-v2", "bn1_moving_mean", "bn.running_mean"));
}

TEST_CASE("Names: Inception has Caffe's names in PyTorch, and two sets of names in MXNet") {
  auto both = [](kj::StringPtr ours, kj::StringPtr torch, kj::StringPtr mxnet) {
    INFO(ours);
    CHECK(has("inception-bn", ours, torch));
    CHECK(has("inception-bn", ours, mxnet));
  };
  both("conv1_weight", "conv1_7x7_s2.weight", "conv_conv1_weight");
  both("conv1_bn_gamma", "conv1_7x7_s2_bn.weight", "bn_1_gamma");
  both("conv2_reduce_weight", "conv2_3x3_reduce.weight", "conv_conv2red_weight");
  both("conv2_reduce_bn_beta", "conv2_3x3_reduce_bn.bias", "bn_2_red_beta");
  both("in3a_1x1_weight", "inception_3a_1x1.weight", "conv_3a_1x1_weight");
  both("in3a_3x3_reduce_bn_moving_mean", "inception_3a_3x3_reduce_bn.running_mean",
      "bn_3a_3x3_reduce_moving_mean");
  both("in4e_double3x3_reduce_bias", "inception_4e_double_3x3_reduce.bias",
      "conv_4e_double_3x3_reduce_bias");
  both(
      "in4e_double3x3_0_weight", "inception_4e_double_3x3_1.weight", "conv_4e_double_3x3_0_weight");
  both("in4e_double3x3_1_bn_gamma", "inception_4e_double_3x3_2_bn.weight",
      "bn_4e_double_3x3_1_gamma");
  both("in5b_proj_weight", "inception_5b_pool_proj.weight", "conv_5b_proj_weight");
  both("fc_weight", "last_linear.weight", "fc1_weight");
  CHECK(has("inception-bn", "fc_bias", "fc1_10_classes_bias"));
  CHECK(has("inception-bn-28-small", "conv1_weight", "conv_1_weight"));
  CHECK(has("inception-bn-28-small", "in3a_1x1_bn_beta", "bn_in3a_1x1_beta"));
  CHECK(has("inception-bn-28-small", "in4e_3x3_weight", "conv_in4e_conv_weight"));
}

TEST_CASE("Names: MXNet numbers layers without a name, from 0 for each kind of op") {
  CHECK(has("lenet", "conv2_weight", "convolution1_weight"));
  CHECK(has("lenet", "fc2_bias", "fullyconnected1_bias"));
  CHECK(has("inception-bn-28-small", "in3a_3x3_bn_gamma", "batchnorm2_gamma"));
  CHECK(has("resnet-20", "stage2_unit1_shortcut_weight", "convolution9_weight"));
  CHECK(has("resnet-20-v2", "stage2_unit1_shortcut_weight", "stage2_unit1_sc_weight"));
  CHECK(has("resnet-20-v2", "data_bn_moving_var", "bn_data_moving_var"));
}

TEST_CASE("Names: PyTorch numbers the layers of airbench94, as in a sequence") {
  CHECK(has("airbench94", "whiten_bias", "0.bias"));
  CHECK(has("airbench94", "group1_conv2_weight", "2.conv2.weight"));
  CHECK(has("airbench94", "group3_bn1_moving_mean", "4.norm1.running_mean"));
  CHECK(has("airbench94", "head_weight", "7.weight"));
}

TEST_CASE("Names: no two arrays of a network share a name") {
  for (auto& network: nn::NETWORKS) {
    INFO(network.name);
    auto graph = graphOf(network);
    kj::HashMap<kj::String, kj::StringPtr> owners;
    auto check = [&](nn::NodeId node, kj::StringPtr name) {
      auto own = [&](kj::String other) {
        auto& owner = owners.findOrCreate(other, [&]() {
          return kj::HashMap<kj::String, kj::StringPtr>::Entry{kj::str(other), name};
        });
        INFO(other);
        CHECK(owner == name);
      };
      own(kj::str(name));
      for (auto& other: namesElsewhere(graph, node, name)) own(kj::str(other));
    };
    for (auto& key: graph.keys) check(key.node, key.name);
    for (auto& statistic: graph.statistics) check(statistic.node, statistic.name);
  }
}

TEST_CASE("Names: a layer number that no network has is mapped to no other name") {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({1, 1, 1}, diagnostics);
  auto last = builder.add(
      "stage1_unit99999999999999999999_conv1", nn::Dense{2, false}, kj::arr(nn::NodeId(0)), {});
  auto graph = builder.finish(last, {});
  for (auto& other: namesElsewhere(graph, 1, graph.keys[0].name)) {
    CHECK(!tests::contains(other, "layer1"));
  }
}

TEST_CASE("Names: the counters of PyTorch's batch norms are bookkeeping") {
  CHECK(isBookkeeping("layer1.0.bn1.num_batches_tracked"));
  CHECK(!isBookkeeping("layer1.0.bn1.running_mean"));
}

}  // namespace
}  // namespace runner
