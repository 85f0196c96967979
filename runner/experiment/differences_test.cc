#include "runner/experiment/differences.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

TEST_CASE("firstDifferences: names the first keys that differ with both values, and counts all") {
  constexpr kj::StringPtr A = "name = \"x\"\n[data]\nbatch_size = 64\n"_kj;
  CHECK(firstDifferences(A, A) == "");
  CHECK(firstDifferences(A, "") == "");
  CHECK(firstDifferences(A, "name = \"x\"\n[data]\nbatch_size = 32\n") ==
        "data.batch_size is 64, not 32");
  CHECK(firstDifferences(A, "name = \"x\"\n[train]\nseed = 1\n") ==
        "data.batch_size is 64, not absent; train.seed is absent, not 1");
  CHECK(firstDifferences(A, "name = \"y\"\n[train]\nseed = 1\nepochs = 2\n") ==
        "name is x, not y; data.batch_size is 64, not absent; train.seed is absent, not 1; … (4 "
        "keys in all)");
  auto lists = [](int first) {
    return kj::str("[cluster]\ndevices = [", first,
        ", \"cpu:1\", \"cpu:2\", \"cpu:3\", \"cpu:4\", \"cpu:5\"]\n");
  };
  CHECK(firstDifferences(lists(1), lists(2)) == "cluster.devices differs");
}

TEST_CASE("differences of addresses show no passwords and queries") {
  auto from = [](kj::StringPtr address) { return kj::str("[data]\nsource = \"", address, "\"\n"); };
  auto a = from("https://me:secret@a.org/x?key=secret"), b = from("https://a.org/y");
  auto c = from("https://a.org/x?key=other");
  CHECK(firstDifferences(a, b) == "data.source is https://a.org/x, not https://a.org/y");
  CHECK(firstDifferences(a, c) == "data.source differs");
  kj::StringPtr texts[] = {a, b, c};
  auto found = differencesOf(texts);
  CHECK(kj::strArray(found.keys, " ") == "source");
  CHECK(found.values[0][0] == "https://a.org/x");
  CHECK(found.values[1][0] == "https://a.org/y");
  CHECK(found.values[2][0] == "https://a.org/x");
}

TEST_CASE("differencesOf: returns only keys whose values differ, in the order of the texts") {
  kj::StringPtr texts[] = {R"(name = "x"
[data]
batch_size = 128
[train]
epochs = 2
optimizer = { kind = "sgd", learning_rate = 0.1 }
[expect]
train_loss = { at_most = 1 }
)",
      R"(name = "x"
[data]
batch_size = 256
[train]
optimizer = { kind = "adam", learning_rate = 0.1 }
[cluster]
devices = ["cpu:0", "cpu:1"]
)"};
  auto found = differencesOf(texts);
  CHECK(kj::strArray(found.keys, " ") == "batch_size epochs kind devices");
  CHECK(kj::strArray(found.values[0], "; ") == "128; 2; sgd; ");
  CHECK(kj::strArray(found.values[1], "; ") == "256; ; adam; [\"cpu:0\", \"cpu:1\"]");
}

TEST_CASE(
    "differencesOf: equal texts have no differences, and a text that cannot be read is skipped") {
  kj::StringPtr texts[] = {"a = 1\n", "a = 1\n"};
  CHECK(differencesOf(texts).keys.size() == 0);
  kj::StringPtr broken[] = {"a = 1\n", "a = \n"};
  CHECK(differencesOf(broken).keys.size() == 0);
  kj::StringPtr three[] = {"", "a = 1\n", "a = \n", "a = 2\n"};
  auto found = differencesOf(three);
  CHECK(kj::strArray(found.keys, " ") == "a");
  CHECK(found.values[0].size() == 0);
  CHECK(kj::strArray(found.values[1], "; ") == "1");
  CHECK(found.values[2].size() == 0);
  CHECK(kj::strArray(found.values[3], "; ") == "2");
}

TEST_CASE(
    "differencesOf: numbers lists that are too long for a cell, and gives equal lists one number") {
  kj::StringPtr texts[] = {"layers = [{ kind = \"dense\", units = 10 }, { kind = \"softmax\" }]\n",
      "layers = [{ kind = \"dense\", units = 20 }, { kind = \"softmax\" }]\n",
      "layers = [{ kind = \"dense\", units = 10 }, { kind = \"softmax\" }]\n", "a = 1\n"};
  auto found = differencesOf(texts);
  CHECK(kj::strArray(found.keys, " ") == "layers a");
  auto layers = KJ_MAP(values, found.values) {
    return kj::str(values[0]);
  };
  CHECK(kj::strArray(layers, "; ") == "1; 2; 1; ");
}

TEST_CASE("shortKeys: returns the last word, unless two keys have the same one") {
  kj::StringPtr keys[] = {"data.seed", "train.seed", "train.optimizer.momentum", "name"};
  CHECK(kj::strArray(shortKeys(keys), " ") == "data.seed train.seed momentum name");
}

}  // namespace
}  // namespace runner
