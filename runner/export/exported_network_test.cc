#include "runner/export/exported_network.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

nn::NodeId add(nn::GraphBuilder& builder, kj::StringPtr name, nn::Op op,
    kj::ArrayPtr<const nn::NodeId> inputs) {
  return builder.add(name, kj::mv(op), inputs, {});
}
nn::NodeId add(nn::GraphBuilder& builder, kj::StringPtr name, nn::Op op, nn::NodeId input) {
  return add(builder, name, kj::mv(op), kj::arrayPtr(&input, 1));
}

TEST_CASE("Export: with its border, a pool has only whole windows, and the same output size") {
  uint checked = 0;
  for (uint side = 1; side <= 12; ++side) {
    for (uint kernel = 1; kernel <= 5; ++kernel) {
      for (uint stride = 1; stride <= 4; ++stride) {
        for (uint pad = 0; pad < kernel; ++pad) {
          for (auto rounding: {nn::Pool::FLOOR, nn::Pool::CEIL}) {
            nn::Pool pool = {nn::Pool::MAX, kernel, stride, pad, rounding};
            nn::Shape input = {1, side, 9};
            auto inputs = kj::arrayPtr(&input, 1);
            if (nn::misfit(pool, inputs) != nullptr) continue;
            auto output = nn::inferShape(pool, inputs);
            auto border = borderOf(pool, input, output);
            CAPTURE(side);
            CAPTURE(kernel);
            CAPTURE(stride);
            CAPTURE(pad);
            CHECK(border.top == pad);
            CHECK(border.left == pad);
            CHECK(border.bottom < kernel);
            CHECK(border.right < kernel);
            CHECK((side + border.top + border.bottom - kernel) / stride + 1 == output.height);
            CHECK((9 + border.left + border.right - kernel) / stride + 1 == output.width);
            ++checked;
          }
        }
      }
    }
  }
  CHECK(checked > 700);
}

TEST_CASE("vectorsOf: dense layers give vectors, and so do activations and sums of vectors") {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({3, 4, 4}, diagnostics);
  auto dense = add(builder, "fc1", nn::Dense{5, true}, 0);
  auto relu = add(builder, "relu", nn::Activation{nn::Activation::RELU}, dense);
  auto pool = add(builder, "pool", nn::Pool{nn::Pool::AVERAGE, 4, 1, 0, nn::Pool::FLOOR}, 0);
  nn::NodeId mixed[] = {relu, pool};
  auto concat = add(builder, "concat", nn::Concat{}, mixed);
  auto conv = add(builder, "conv", nn::Conv2d{5, 1, 1, 0, true}, relu);
  nn::NodeId vectorsAlone[] = {dense, relu};
  auto sum = add(builder, "sum", nn::Add{}, vectorsAlone);
  nn::NodeId all[] = {concat, conv, sum};
  auto logits = add(builder, "all", nn::Concat{}, all);
  auto graph = builder.finish(logits, {});
  REQUIRE(diagnostics.count() == 0);
  auto vectors = vectorsOf(graph);
  CHECK_FALSE(vectors[0]);
  CHECK(vectors[dense]);
  CHECK(vectors[relu]);
  CHECK_FALSE(vectors[pool]);
  CHECK_FALSE(vectors[concat]);
  CHECK_FALSE(vectors[conv]);
  CHECK(vectors[sum]);
  CHECK_FALSE(vectors[logits]);
}

TEST_CASE("Export: a fixed gamma is 1, weights have PyTorch's shapes, and class names are UTF-8") {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({3, 4, 4}, diagnostics);
  auto conv = add(builder, "conv", nn::Conv2d{2, 3, 1, 0, false}, 0);
  auto held = add(builder, "held", nn::BatchNorm{1e-3f, 0.9f, true}, conv);
  auto free = add(builder, "free", nn::BatchNorm{1e-3f, 0.9f, false}, held);
  auto graph = builder.finish(add(builder, "fc", nn::Dense{2, false}, free), {});
  graph.classNames = kj::arr(kj::str("caf\xe9"), kj::str("café"), kj::str());
  auto parameters = kj::heapArray<float>(graph.parameters);
  for (float& value: parameters) value = 7;
  auto statistics = kj::heapArray<float>(graph.statisticsSize);
  ExportedNetwork network{graph, parameters, statistics, nullptr};
  CHECK(network.valuesOf(graph.keys[1])[0] == 1);  // gamma
  CHECK(network.valuesOf(graph.keys[2])[0] == 7);  // beta
  CHECK(network.valuesOf(graph.keys[3])[0] == 7);
  CHECK(kj::strArray(network.shapeOf(graph.keys[0]), ",") == "2,3,3,3");
  CHECK(kj::strArray(network.shapeOf(graph.keys[1]), ",") == "2");
  CHECK(kj::strArray(network.shapeOf(graph.keys[5]), ",") == "2,8");
  CHECK(kj::strArray(network.classNames(), " ") == "caf\xef\xbf\xbd café 2");
}

TEST_CASE("Export: inputOf() and logits() skip dropout layers") {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({3, 1, 1}, diagnostics);
  auto first = add(builder, "drop1", nn::Dropout{0.5}, 0);
  auto second = add(builder, "drop2", nn::Dropout{0.5}, first);
  auto dense = add(builder, "fc", nn::Dense{2, false}, second);
  auto graph = builder.finish(add(builder, "drop3", nn::Dropout{0.5}, dense), {});
  ExportedNetwork network{graph, nullptr, nullptr, nullptr};
  CHECK(network.inputOf(graph.nodes[dense], 0) == 0);
  CHECK(network.logits() == dense);
}

}  // namespace
}  // namespace runner
