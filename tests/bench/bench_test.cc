#include <doctest/doctest.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "tests/command.h"
#include "tests/run.h"
#include "tests/text.h"

namespace tests {
namespace {

Ended bench(std::initializer_list<kj::StringPtr> words, kj::StringPtr setting = "BENCH=1") {
  kj::Vector<kj::StringPtr> all;
  all.add("tools/bench/bench");
  for (auto word: words) all.add(word);
  return Command(all, {.environment = kj::arrayPtr(&setting, 1)}).wait();
}

// The number after `"key":`, or -1.
double numberOf(kj::StringPtr json, kj::StringPtr key) {
  const char* at = strstr(json.cStr(), kj::str('"', key, "\":").cStr());
  return at == nullptr ? -1 : strtod(at + key.size() + 3, nullptr);
}

TEST_CASE("bench train --json: prints one line of JSON, whose figures fit each other") {
  auto ended = bench({"train", "configs/mnist_mlp_local.toml", "--steps=5", "--json"});
  CHECK(ended.errors == "");
  REQUIRE(ended.exitCode == 0);
  REQUIRE(ended.output.findFirst('\n').orDefault(0) == ended.output.size() - 1);
  double images = numberOf(ended.output, "images_per_s");
  double median_s = numberOf(ended.output, "step_s_median");
  CHECK(images * median_s == doctest::Approx(100).epsilon(0.01));
  CHECK(numberOf(ended.output, "step_s_best") <= median_s);
  CHECK(numberOf(ended.output, "batch") == 100);
  CHECK(numberOf(ended.output, "threads") == 1);
  CHECK(numberOf(ended.output, "read_s") >= 0);
  CHECK(contains(ended.output, ",\"precision\":\"fp32\",\"instruction_set\":\"avx"));
  CHECK(contains(ended.output,
      "\"checked\":\"logits and gradients of 2 images match the reference implementation\""));
  CHECK(numberOf(ended.output, "peak_bytes") > numberOf(ended.output, "program_bytes"));
}

TEST_CASE("bench train: a network with dropout matches the reference, and its steps are timed") {
  auto ended = bench({"train", "tests/experiments/fashion_mnist_elu.toml", "--steps=5"});
  CHECK(ended.errors == "");
  CHECK(ended.exitCode == 0);
  CHECK(strstr(ended.output.cStr(),
            "5 steps; logits and gradients of 2 images match the reference implementation") !=
        nullptr);
}

// Returns the cells of the line of `text` that begins with `head`. Two or more spaces separate
// cells.
kj::Vector<kj::String> cellsOf(kj::StringPtr text, kj::StringPtr head) {
  kj::Vector<kj::String> cells;
  const char* at = strstr(text.cStr(), kj::str('\n', head, ' ').cStr());
  if (at == nullptr) return cells;
  for (++at; *at != '\n' && *at != '\0';) {
    const char* end = at;
    while (*end != '\n' && *end != '\0' && strncmp(end, "  ", 2) != 0) ++end;
    cells.add(kj::heapString(at, end - at));
    for (at = end; *at == ' ';) ++at;
  }
  return cells;
}

TEST_CASE(
    "bench train --ops: has one row per op and direction, and times that add up to the step") {
  auto ended = bench({"train", "configs/mnist_mlp_local.toml", "--steps=5", "--ops"});
  CHECK(ended.errors == "");
  REQUIRE(ended.exitCode == 0);
  auto header = cellsOf(ended.output, "op");
  CHECK(kj::strArray(header, ",") == "op,kind,direction,ms,share,GFLOP/s,GB/s,peak");
  double sum_ms = 0;
  for (auto name: {"fc1"_kj, "fc2"_kj, "fc3"_kj}) {
    auto cells = cellsOf(ended.output, name);
    REQUIRE(cells.size() == 8);
    CHECK(cells[1] == "dense");
    CHECK(cells[2] == "forward");
    CHECK((cells[7].endsWith(" % fma") || cells[7].endsWith(" % copy")));
    sum_ms += strtod(cells[3].cStr(), nullptr);
  }
  double ops_ms = strtod(cellsOf(ended.output, "ops")[1].cStr(), nullptr);
  double rest_ms = strtod(cellsOf(ended.output, "waiting, store")[1].cStr(), nullptr);
  double step_ms = strtod(cellsOf(ended.output, "whole step")[1].cStr(), nullptr);
  CHECK(sum_ms > 0);
  CHECK(sum_ms <= ops_ms);
  CHECK(rest_ms >= 0);
  CHECK(ops_ms + rest_ms == doctest::Approx(step_ms).epsilon(0.01));
}

TEST_CASE("bench train: has one row per kind and direction without --ops, no table with --no-ops") {
  auto kinds = bench({"train", "configs/mnist_mlp_local.toml", "--steps=5"});
  auto cells = cellsOf(kinds.output, "3");
  REQUIRE(cells.size() == 8);
  CHECK(cells[1] == "dense");
  auto none = bench({"train", "configs/mnist_mlp_local.toml", "--steps=5", "--no-ops"});
  CHECK(none.exitCode == 0);
  CHECK(cellsOf(none.output, "op").size() == 0);
  CHECK(cellsOf(none.output, "images/s").size() > 0);
}

TEST_CASE("bench train --data: measures images/s from memory and from records") {
  auto ended =
      bench({"train", "tests/experiments/fashion_mnist_mlp.toml", "--steps=5", "--data", "--json"},
          cacheSetting());
  CHECK(ended.errors == "");
  REQUIRE(ended.exitCode == 0);
  CHECK(numberOf(ended.output, "images_per_s") > 0);
  CHECK(numberOf(ended.output, "data_images_per_s") > 0);
  CHECK(numberOf(ended.output, "data_read_s") > 0);
}

TEST_CASE("bench train --classes: builds a network for a missing data set") {
  auto ended = bench({"train", "configs/imagenet_inception_bn.toml", "--set=data.batch_size=1",
      "--set=data.augment.crop=32", "--set=model.network=resnet-20", "--set=data.source=/nowhere",
      "--classes=12", "--steps=3", "--json"});
  CHECK(ended.errors == "");
  CHECK(ended.exitCode == 0);
  auto both = bench({"train", "configs/imagenet_inception_bn.toml", "--classes=12", "--data"});
  CHECK(both.exitCode == 2);
}

TEST_CASE(
    "bench losses --dump: writes the first weights, the batches that it repeats, and the losses") {
  auto folder = kj::str(newFolder(), "/dump");
  auto ended = bench({"losses", "configs/mnist_mlp_local.toml", "--steps=3", "--batches=2",
      kj::str("--dump=", folder)});
  CHECK(ended.errors == "");
  REQUIRE(ended.exitCode == 0);
  auto file = [&](kj::StringPtr name) { return readFile(kj::str(folder, "/", name)); };
  auto losses = file("losses.txt");
  CHECK(std::count(losses.begin(), losses.end(), '\n') == 3);
  CHECK(ended.output.startsWith("{\"losses\":[2."));
  CHECK(file("weights.f32").size() == 4 * 109386);
  CHECK(file("weights_after.f32").size() == 4 * 109386);
  CHECK(file("weights_after.f32") != file("weights.f32"));
  CHECK(file("pixels.f32").size() == 4 * 2 * 100 * 784);
  CHECK(file("labels.i32").size() == 4 * 2 * 100);
  CHECK(contains(file("keys.tsv"), "\nfc1_bias\tbias\t128\t1\t100352\t128\t1\t1\t\t\n"));
  CHECK(contains(file("experiment.toml"), "network = \"mlp\""));
}

TEST_CASE("bench losses --dump FILE: refuses a file in place of a folder, and keeps it") {
  auto file = kj::str(newFolder(), "/mine");
  writeFile(file, "mine");
  auto ended = bench({"losses", "configs/mnist_mlp_local.toml", "--steps=1", "--dump", file});
  CHECK(ended.exitCode == 1);
  CHECK(ended.output == "");
  CHECK(ended.errors ==
        kj::str("error: ", file,
            " cannot be created or opened as a folder. Name another one with --dump\n"));
  CHECK(readFile(file) == "mine");
}

TEST_CASE("bench peers --help: the continuation of an indented line is indented, too") {
  auto help = bench({"peers", "--help"});
  CHECK(help.exitCode == 0);
  CHECK(
      contains(help.output, "\n  two-workers: the small Inception in two workers of one thread, "));
  size_t options = ::strstr(help.output.cStr(), "\nOptions:\n") - help.output.cStr();
  bool isIndented = false;
  for (size_t i = 0; i < options; i++) {
    if (help.output[i] != '\n') continue;
    auto line = help.output.slice(i + 1);
    CAPTURE(line);
    // A blank line separates indented lines from the next paragraph.
    CHECK_FALSE((isIndented && line[0] != ' ' && line[0] != '\n'));
    isIndented = line[0] == ' ';
  }
}

TEST_CASE("bench train: reports a mistake in the file as `runner check` does") {
  auto ended = bench({"train", "configs/mnist_mlp_local.toml", "--set=data.batch_size=0"});
  CHECK(ended.exitCode == 2);
  CHECK(ended.errors.startsWith("--set data.batch_size:1:17: error: `batch_size` must be"));
}

TEST_CASE("bench losses: if a loss is not a number, prints a sentence and no JSON") {
  auto ended = bench({"losses", "configs/mnist_mlp_local.toml", "--steps=9",
      "--set=train.optimizer.learning_rate=1e30"});
  CHECK(ended.exitCode == 1);
  CHECK(ended.output == "");
  CHECK(contains(ended.errors, "the loss is "));
}

}  // namespace
}  // namespace tests
