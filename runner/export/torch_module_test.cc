#include "runner/export/torch_module.h"

#include <doctest/doctest.h>

#include "runner/checkpoints/safetensors.h"
#include "runner/export/torch_names.h"
#include "runner/export/torch_network.h"
#include "runner/export/torch_preprocess.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

nn::NodeId add(nn::GraphBuilder& builder, kj::StringPtr name, nn::Op op, nn::NodeId input) {
  return builder.add(name, kj::mv(op), kj::arrayPtr(&input, 1), {});
}

TEST_CASE("torchNames: replaces names that Python or PyTorch reserve, and makes all names differ") {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({3, 4, 4}, diagnostics);
  nn::NodeId last = 0;
  for (auto name: {"conv1"_kj, "train"_kj, "class"_kj, "a b"_kj, "a_b"_kj, "1x1"_kj, "_x"_kj,
           "x"_kj, "größe"_kj}) {
    last = add(builder, name, nn::Scale{2}, last);
  }
  auto graph = builder.finish(add(builder, "fc", nn::Dense{2, false}, last), {});
  REQUIRE(diagnostics.count() == 0);
  CHECK(kj::strArray(torchNames(graph), " ") ==
        "data conv1 train_2 class_2 a_b a_b_2 layer_1x1 layer__x x_2 gr____e fc loss");
}

TEST_CASE("pythonText: quotes, backslashes and control characters are escaped") {
  CHECK(pythonText("a \"b\" \\ c\n\x7f café") == "\"a \\\"b\\\" \\\\ c\\x0a\\x7f café\"");
}

TEST_CASE(
    "torchNetwork: writes one line per layer, and a variable for a result that is used later") {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({3, 9, 9}, diagnostics);
  auto conv = add(builder, "conv1", nn::Conv2d{8, 3, 2, 1, false}, 0);
  auto norm = add(builder, "bn1", nn::BatchNorm{1e-3f, 0.9f, true}, conv);
  auto relu = add(builder, "relu1", nn::Activation{nn::Activation::RELU}, norm);
  auto pool = add(builder, "pool1", nn::Pool{nn::Pool::MAX, 2, 1, 1, nn::Pool::CEIL}, relu);
  auto wide = add(builder, "pool2", nn::Pool{nn::Pool::MAX, 3, 2, 0, nn::Pool::CEIL}, pool);
  auto thin = add(builder, "conv2", nn::Conv2d{8, 1, 1, 0, true}, wide);
  nn::NodeId summed[] = {wide, thin};
  auto sum = builder.add("sum", nn::Add{}, summed, {});
  auto mean = add(builder, "mean", nn::Pool{nn::Pool::AVERAGE, 2, 2, 0, nn::Pool::CEIL}, sum);
  nn::NodeId joined[] = {mean, mean};
  auto concat = builder.add("concat", nn::Concat{}, joined, {});
  auto dropped = add(builder, "drop", nn::Dropout{0.5}, concat);
  auto dense = add(builder, "fc", nn::Dense{4, true}, dropped);
  auto second = add(builder, "bn2", nn::BatchNorm{1e-5f, 0.9f, false}, dense);
  auto graph = builder.finish(add(builder, "logits", nn::Scale{0.25f}, second), {});
  REQUIRE(diagnostics.count() == 0);
  CHECK(torchNetwork(graph, torchNames(graph)) ==
        R"(class Network(nn.Module):
    """Takes normalised images, N×3×9×9, and returns logits, N×4."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8, eps=0.001, momentum=1 - 0.9)
        self.bn1.weight.requires_grad_(False)  # stays 1
        self.pool1 = nn.MaxPool2d(2, 1, padding=1)
        self.pool2 = nn.Sequential(nn.ConstantPad2d((0, 1, 0, 1), -torch.inf), nn.MaxPool2d(3, 2))
        self.conv2 = nn.Conv2d(8, 8, 1)
        self.mean = nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.AvgPool2d(2, 2))
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(64, 4)
        self.bn2 = nn.BatchNorm1d(4, eps=1e-05, momentum=1 - 0.9)

    def forward(self, images):
        x = self.conv1(images)
        x = self.bn1(x)
        x = F.relu(x)
        x = self.pool1(x)
        pool2 = self.pool2(x)
        x = self.conv2(pool2)
        x = pool2 + x
        x = self.mean(x)
        x = torch.cat([x, x], 1)
        x = self.drop(x)
        x = self.fc(torch.flatten(x, 1))
        x = self.bn2(x)
        x = x * 0.25
        return x
)");
}

TEST_CASE("torchPreprocess: writes only the steps that validation has") {
  Preprocessing steps{.images = {1, 28, 28},
      .view = {1, 28, 28},
      .means = kj::heapArray<float>({0}),
      .factors = kj::heapArray<float>({1})};
  auto plain = torchPreprocess(steps);
  CHECK(contains(plain, "x = (x * shares).sum(1, keepdim=True)"));
  CHECK(contains(plain, "if x.shape[2:] != (28, 28):"));
  for (auto step: {"interpolate"_kj, "top"_kj, "F.pad"_kj, "x - "_kj}) {
    CHECK_FALSE(contains(plain, step));
  }
  Preprocessing photographs{.view = {3, 224, 224},
      .crop = 224,
      .centreCrop = 0.875,
      .means = kj::arr(123.68f, 116.779f, 103.939f),
      .factors = kj::arr(1.0f, 1.0f, 1.0f)};
  auto resized = torchPreprocess(photographs);
  CHECK_FALSE(contains(resized, "shares"));
  CHECK_FALSE(contains(resized, "cover("));
  CHECK(contains(resized, "side = max(1, int(min(height, width) * 0.875 + 0.5))"));
  CHECK(contains(resized, "x = x - x.new_tensor([123.68, 116.779, 103.939]).reshape"));
  CHECK_FALSE(contains(resized, "x = x * "));
}

TEST_CASE("torchWeights: writes a state dict with PyTorch's names, and a mean image") {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({1, 2, 2}, diagnostics);
  auto conv = add(builder, "conv", nn::Conv2d{2, 2, 1, 0, true}, 0);
  auto norm = add(builder, "bn", nn::BatchNorm{1e-3f, 0.9f, false}, conv);
  auto graph = builder.finish(add(builder, "fc", nn::Dense{2, true}, norm), {});
  graph.classNames = kj::arr(kj::str("cat"), kj::str("dog"));
  auto parameters = kj::heapArray<float>(graph.parameters);
  auto statistics = kj::heapArray<float>(graph.statisticsSize);
  for (auto i: kj::indices(parameters)) parameters[i] = i;
  for (auto i: kj::indices(statistics)) statistics[i] = 100 + i;
  Preprocessing steps{
      .means = kj::arr(1.0f, 2.0f, 3.0f, 4.0f), .factors = kj::heapArray<float>({0.5f})};
  ExportedNetwork network{graph, parameters, statistics, "12ab"};
  auto file = torchWeights(network, steps);
  auto tensors = tensorsIn(file);
  auto lines = KJ_MAP(tensor, tensors) {
    auto first = reinterpret_cast<const float*>(tensor.values.begin());
    return kj::str(tensor.name, " ", tensor.shape, " ", *first);
  };
  CHECK(kj::strArray(lines, "\n") ==
        "conv.weight 2,1,2,2 0\nconv.bias 2 8\nbn.weight 2 10\nbn.bias 2 12\nfc.weight 2,2 14\n"
        "fc.bias 2 18\nbn.running_mean 2 100\nbn.running_var 2 102\nmean_image 1,2,2 1");
  auto notes = notesIn(file);
  REQUIRE(notes.size() == 4);
  CHECK(notes[1].text == "12ab");
  CHECK(notes[2].text == "cat\ndog");
  CHECK(notes[3].text == R"({"mean_image":true,"factor":[0.5]})");
  auto script = torchScript(network, steps);
  CHECK(contains(script, "CLASS_NAMES = [\n    \"cat\",\n    \"dog\",\n]\n"));
  CHECK(contains(script, "sha256\n12ab."));
  CHECK(contains(script, "    x = x - read_tensors()[\"mean_image\"].to(x.device)\n"));
  CHECK(contains(script, "    del tensors[\"mean_image\"]"));
  Preprocessing plain{.means = kj::heapArray<float>({0}), .factors = kj::heapArray<float>({1})};
  graph.classNames = nullptr;
  auto unnamed = torchScript({graph, parameters, statistics, nullptr}, plain);
  CHECK(contains(unnamed, "CLASS_NAMES = [str(label) for label in range(2)]\n"));
  CHECK_FALSE(contains(unnamed, "mean_image"));
  CHECK_FALSE(contains(unnamed, "sha256"));
}

}  // namespace
}  // namespace runner
