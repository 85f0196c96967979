#include "runner/weights/load_weights.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nn/network/networks.h"
#include "runner/checkpoints/weights.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// lenet-bn over images of 28×28 with one channel. Rows of CONVENTIONS differ in batch norms.
nn::Graph graphWith(uint classes, const nn::Conventions& conventions = nn::CONVENTIONS[0]) {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({1, 28, 28}, diagnostics);
  nn::NodeId last = 0;
  for (auto& network: nn::NETWORKS) {
    if (network.name == "lenet-bn"_kj) {
      last = nn::addLayers(builder, network.layers(classes, {}), 0, conventions);
    }
  }
  auto graph = builder.finish(last, {});
  REQUIRE(diagnostics.count() == 0);
  return graph;
}

// The flat arrays of a network. Value i is `first` + i.
struct Values {
  Values(const nn::Graph& graph, float first)
      : parameters(kj::heapArray<float>(graph.parameters)),
        statistics(kj::heapArray<float>(graph.statisticsSize)) {
    float next = first;
    for (auto& x: parameters) x = next++;
    for (auto& x: statistics) x = next++;
  }

  kj::Array<float> parameters, statistics;
};

WeightsFile written(const kj::StringPtr folder, const nn::Graph& graph, Values& values) {
  auto path = kj::str(folder, "/w.safetensors");
  writeWeights(path, graph, "d", values.parameters, values.statistics);
  return openWeights(path);
}

TEST_CASE("writeWeights: leaves out class names with which nobody could read the header") {
  auto folder = tests::newFolder();
  auto graph = graphWith(20);
  Values values(graph, 1);
  auto nameClasses = [&](size_t bytes) {
    graph.classNames = KJ_MAP(i, kj::zeroTo(20u)) {
      return kj::str(kj::repeat(char('a' + i), bytes));
    };
  };
  nameClasses(10'000);
  CHECK(KJ_REQUIRE_NONNULL(written(folder, graph, values).note("class_names")).size() == 200'019);
  nameClasses(100'000);
  CHECK(written(folder, graph, values).note("class_names") == nullptr);
}

TEST_CASE("whyNotWeights: names what is wrong with a file, and reads none that is too long") {
  auto path = kj::str(tests::newFolder(), "/w.safetensors");
  auto graph = graphWith(10);
  Values values(graph, 1);
  CHECK(KJ_REQUIRE_NONNULL(whyNotWeights(path, "")) == kj::str(path, " is missing"));
  auto write = [&]() {
    return writeWeights(path, graph, "d", values.parameters, values.statistics);
  };
  auto sha256 = write();
  CHECK((whyNotWeights(path, sha256) == nullptr));
  values.parameters[3]++;
  write();
  CHECK(contains(KJ_REQUIRE_NONNULL(whyNotWeights(path, sha256)), " does not hold the weights"));
  constexpr off_t TOO_LONG = 1ull << 40;
  for (off_t size: {off_t(100), TOO_LONG}) {
    REQUIRE(::truncate(path.cStr(), size) == 0);
    CHECK(contains(KJ_REQUIRE_NONNULL(whyNotWeights(path, sha256)), " is damaged: "));
  }
  REQUIRE(::truncate(path.cStr(), 0) == 0);
  CHECK(KJ_REQUIRE_NONNULL(whyNotWeights(path, sha256)) == kj::str(path, " is empty"));
  REQUIRE(::unlink(path.cStr()) == 0);
  REQUIRE(::mkfifo(path.cStr(), 0600) == 0);
  CHECK_THROWS_WITH(whyNotWeights(path, sha256), doctest::Contains("it is not a regular file"));
}

TEST_CASE("Load: reads back each value that was written, into the same place") {
  auto folder = tests::newFolder();
  auto graph = graphWith(10);
  Values saved(graph, 1), found(graph, -1e6);
  auto file = written(folder, graph, saved);
  auto report = loadWeights(file, graph, nullptr, found.parameters, found.statistics);
  CHECK(found.parameters == saved.parameters);
  CHECK(found.statistics == saved.statistics);
  CHECK(report.loaded.size() == graph.keys.size() + graph.statistics.size());
  CHECK(report.whyIncomplete() == nullptr);
  CHECK(report.text() == "loaded 14 arrays");
}

TEST_CASE("Load: skipped arrays keep their values, whatever shape the file has for them") {
  auto folder = tests::newFolder();
  auto ten = graphWith(10), five = graphWith(5);
  Values saved(ten, 1), found(five, -1e6);
  auto file = written(folder, ten, saved);

  auto whole = loadWeights(file, five, nullptr, found.parameters, found.statistics);
  CHECK(KJ_ASSERT_NONNULL(whole.whyIncomplete()) ==
        "`fc_weight` has the shape 10×128 there, but the network's has 5×128 (and 1 more)");

  kj::String skip[] = {kj::str("fc_*")};
  auto report = loadWeights(file, five, skip, found.parameters, found.statistics);
  CHECK(report.whyIncomplete() == nullptr);
  CHECK(report.text() == "loaded 12 arrays; skipped fc_weight, fc_bias");
  auto& last = five.keys.back();
  CHECK(last.name == "fc_bias");
  CHECK(found.parameters[last.offset] == -1e6f + float(last.offset));
  CHECK(found.parameters[0] == 1);
}

// Writes a file with these arrays of 2-byte numbers, each of which is `bits`.
void writeHalves(kj::StringPtr path, kj::ArrayPtr<const Tensor> tensors, uint16_t bits) {
  auto head = safetensorsHead(nullptr, tensors);
  uint64_t size = 0;
  for (auto& tensor: tensors) size += tensor.bytes;
  auto values = kj::heapArray<uint16_t>(size / sizeof(bits));
  for (auto& value: values) value = bits;
  kj::ArrayPtr<const kj::byte> pieces[] = {head, values.asBytes()};
  writeWhole(path, pieces);
}

TEST_CASE("Load: float16 arrays with PyTorch's names become float32 arrays with our names") {
  auto folder = tests::newFolder();
  auto graph = graphWith(10);
  auto path = kj::str(folder, "/torch.safetensors");
  Tensor tensors[] = {{kj::str("conv1.weight"), "F16"_kj, kj::str("32,1,3,3"), 32 * 9 * 2},
      {kj::str("conv1_bn.weight"), "F16"_kj, kj::str("32"), 64},
      {kj::str("conv1_bn.running_var"), "F16"_kj, kj::str("32"), 64},
      {kj::str("conv1_bn.num_batches_tracked"), "I64"_kj, kj::str(), 8},
      {kj::str("conv1_bn.momentum"), "F16"_kj, kj::str("1"), 2}};
  writeHalves(path, tensors, 0x3e00);
  Values found(graph, -1e6);
  auto report = loadWeights(openWeights(path), graph, nullptr, found.parameters, found.statistics);
  CHECK(kj::strArray(report.loaded, " ") == "conv1_weight conv1_bn_gamma conv1_bn_moving_var");
  CHECK(kj::strArray(report.unused, " ") == "conv1_bn.momentum");
  CHECK(found.parameters[0] == 1.5);
  CHECK(found.statistics[graph.statistics[1].offset] == 1.5);
  CHECK(found.statistics[0] < 0);
}

TEST_CASE("Load: refuses weights that are whole numbers") {
  auto folder = tests::newFolder();
  auto graph = graphWith(10);
  auto path = kj::str(folder, "/w.safetensors");
  Tensor tensors[] = {{kj::str("fc_bias"), "I64"_kj, kj::str("10"), 80}};
  writeHalves(path, tensors, 0);
  Values found(graph, 0);
  auto file = openWeights(path);
  CHECK_THROWS_WITH(loadWeights(file, graph, nullptr, found.parameters, found.statistics),
      doctest::Contains("`fc_bias` has the type I64, but weights are real numbers"));
}

TEST_CASE("Load: if only biases are missing, the message says how to leave them out") {
  auto folder = tests::newFolder();
  auto graph = graphWith(10);
  kj::Vector<Tensor> tensors;
  for (auto& key: graph.keys) {
    if (key.role == nn::Key::BIAS) continue;
    tensors.add(Tensor{kj::str(key.name), "F16"_kj, shapeOf(key, graph), key.size * 2});
  }
  for (auto& array: graph.statistics) {
    tensors.add(Tensor{kj::str(array.name), "BF16"_kj, kj::str(array.size), array.size * 2});
  }
  auto path = kj::str(folder, "/w.safetensors");
  writeHalves(path, tensors, 0x3f80);
  Values found(graph, 0);
  auto file = openWeights(path);
  auto report = loadWeights(file, graph, nullptr, found.parameters, found.statistics);
  CHECK(KJ_ASSERT_NONNULL(report.whyIncomplete()) ==
        "it does not have conv1_bias, conv2_bias, fc_bias. Its layers probably have no biases, "
        "which is the same as biases of 0. Arrays that are named in `skip` keep their initial "
        "values: 0, unless `init` says otherwise");
  CHECK(found.statistics[0] == 1);
  kj::String skip[] = {kj::str("*_bias")};
  auto rest = loadWeights(file, graph, skip, found.parameters, found.statistics);
  CHECK(rest.whyIncomplete() == nullptr);
}

TEST_CASE("Load: recognizes MXNet's files by content, and says how to convert other files") {
  auto folder = tests::newFolder();
  auto write = [&](kj::StringPtr content) {
    auto path = kj::str(folder, "/weights");
    writeWhole(path, content);
    return path;
  };
  auto complaint = [&](kj::StringPtr content) {
    auto path = write(content);
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { openWeights(path); })) return reasonOf(*e);
    return kj::str();
  };
  char list[40] = {0x12, 1};  // MXNet's magic number, and no arrays
  CHECK(openWeights(write(kj::heapString(list, 32))).arrays.size() == 0);
  CHECK(
      contains(complaint(kj::heapString(list, 31)), " is not a file of weights: it is cut short"));
  // A zip archive begins with 30 bytes and the name of its first file.
  auto zip = [](kj::StringPtr name) {
    auto head = kj::heapString(30);
    memset(head.begin(), 0, head.size());
    memcpy(head.begin(), "PK\x03\x04", 4);
    head[26] = name.size();
    return kj::str(head, name, "PK");
  };
  constexpr auto TORCH =
      "safetensors.torch.save_file(torch.load(\"weights.pt\", map_location=\"cpu\"), "_kj;
  CHECK(contains(complaint(zip("weights/data.pkl")), TORCH));
  CHECK(contains(complaint("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."), TORCH));
  CHECK(contains(complaint("\x80\x04 a pickle"), "is a pickle of Python. "));
  CHECK(contains(complaint(zip("arr_0.npy")), "safetensors.numpy.save_file(dict("));
  CHECK(contains(complaint(zip("data.pkl.npy")), "was written by NumPy"));
  CHECK(contains(complaint(zip("model/code/0")), "is a zip archive of another program"));
  CHECK(contains(complaint("PK\x03\x04"), "is a zip archive of another program"));
  CHECK(contains(complaint("\x93NUMPY"), "was written by NumPy"));
  CHECK(contains(complaint("x"), " is not a file of weights: it is cut short"));
}

TEST_CASE("Load: a value that is not finite is an error that names its array") {
  auto folder = tests::newFolder();
  auto graph = graphWith(10);
  Values saved(graph, 1), found(graph, 0);
  saved.parameters[graph.keys.back().offset + 3] = NAN;
  auto file = written(folder, graph, saved);
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() {
                loadWeights(file, graph, nullptr, found.parameters, found.statistics);
              })) {
    CHECK(contains(reasonOf(*e), "w.safetensors: `fc_bias` holds nan"));
  } else {
    FAIL("a NaN was loaded");
  }
}

TEST_CASE("Load: a gamma that the network holds at 1 must be 1 in the file") {
  auto folder = tests::newFolder();
  for (auto& conventions: nn::CONVENTIONS) {
    INFO(conventions.name);
    auto graph = graphWith(10, conventions);
    Values saved(graph, 1), found(graph, 0);
    auto file = written(folder, graph, saved);
    auto load = [&]() { loadWeights(file, graph, nullptr, found.parameters, found.statistics); };
    if (!conventions.fixedGamma) {
      load();
      continue;
    }
    CHECK_THROWS_WITH(load(), doctest::Contains("`conv1_bn_gamma` holds 321, but the network "
                                                "takes `conv1_bn_gamma` as 1"));
    for (auto& key: graph.keys) {
      if (!key.isHeld()) continue;
      for (float& x: saved.parameters.slice(key.offset, key.offset + key.size)) x = 1;
    }
    file = written(folder, graph, saved);
    load();
  }
}

TEST_CASE("Load: one array of a file does not fill two layers") {
  auto folder = tests::newFolder();
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({1, 1, 1}, diagnostics);
  // MXNet's name of the first layer is our name of the second one.
  auto first = builder.add("a", nn::Dense{1, false}, kj::arr(nn::NodeId(0)), {});
  auto last = builder.add("conv_a", nn::Dense{1, false}, kj::arr(first), {});
  auto graph = builder.finish(last, {});
  auto path = kj::str(folder, "/w.safetensors");
  Tensor tensors[] = {{kj::str("conv_a_weight"), "F16"_kj, kj::str("1,1"), 2},
      {kj::str("a.weight"), "F16"_kj, kj::str("1,1"), 2}};
  writeHalves(path, kj::arrayPtr(tensors, 1), 0x3e00);
  Values found(graph, -1);
  auto load = [&](kj::ArrayPtr<const kj::String> skip) {
    return loadWeights(openWeights(path), graph, skip, found.parameters, found.statistics);
  };
  CHECK_THROWS_WITH(load(nullptr),
      doctest::Contains("w.safetensors: `conv_a_weight` would be both `a_weight` and "
                        "`conv_a_weight` of the network. Name one of these in `skip`, or"));
  auto skipped = kj::str("a_*");
  CHECK(load(kj::arrayPtr(&skipped, 1)).text() == "loaded 1 array; skipped a_weight");
  writeHalves(path, tensors, 0x3e00);
  CHECK(load(nullptr).text() == "loaded 2 arrays");
}

TEST_CASE("Load: says if the weights belong to another network") {
  auto folder = tests::newFolder();
  auto graph = graphWith(10);
  auto path = kj::str(folder, "/other.safetensors");
  Tensor tensors[] = {{kj::str("embed"), "F32"_kj, kj::str("1"), 4}};
  auto head = safetensorsHead(nullptr, tensors);
  float one = 1;
  kj::ArrayPtr<const kj::byte> pieces[] = {head, kj::arrayPtr(&one, 1).asBytes()};
  writeWhole(path, pieces);
  Values found(graph, 0);
  auto report = loadWeights(openWeights(path), graph, nullptr, found.parameters, found.statistics);
  CHECK(contains(KJ_ASSERT_NONNULL(report.whyIncomplete()),
      "none of its 1 arrays (embed) belongs to this network, which has conv1_weight"));
}

TEST_CASE(
    "Load: says what is wrong with a folder without weights, and with a file of another kind") {
  auto folder = tests::newFolder();
  auto complaint = [&](kj::StringPtr path) {
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { openWeights(path); })) return reasonOf(*e);
    return kj::str();
  };
  CHECK(contains(complaint(folder), " is not a run: it has no events.jsonl. Name"));
  CHECK(contains(complaint("/nowhere/7"), "cannot find the weights /nowhere/7: No such file"));
  auto events = kj::str(folder, "/events.jsonl");
  tests::writeFile(events, "\n");
  CHECK(contains(complaint(folder), " has no weights.safetensors: it has not finished"));
  CHECK(contains(complaint(events), "events.jsonl is not a file of weights: it is cut short"));
}

}  // namespace
}  // namespace runner
