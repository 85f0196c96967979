// Crops of photographs, beside those of Pillow and torchvision.
#include <doctest/doctest.h>

#include <initializer_list>

#include "io/testing/scratch.h"
#include "tests/command.h"
#include "tests/peers/python.h"
#include "tests/run.h"
#include "tests/skip.h"
#include "tests/text.h"
#include "tools/bench/process.h"

namespace tests {
namespace {

constexpr int NO_PILLOW = 77;

// Compares the first crops of the photographs with those of other programs. Returns a line of JSON,
// or the reason why that cannot be done here.
struct Compared {
  kj::String line;
  const char* whyNot = nullptr;

  double number(kj::StringPtr key) const {
    return KJ_REQUIRE_NONNULL(tools::numberIn(line, key), line);
  }
};
Compared compare(std::initializer_list<kj::StringPtr> settings) {
  if (io::sharedDatasets("imagenet-sample/labels.tsv") == nullptr) {
    return {nullptr, "RUNNER_DATASETS has no imagenet-sample"};
  }
  io::Scratch scratch;
  auto folder = scratch.path("crops"), cache = cacheSetting();
  kj::StringPtr variables[] = {cache};
  Command::Surroundings surroundings{.environment = variables};
  kj::Vector<kj::StringPtr> words;
  for (auto word: {"tools/bench/bench"_kj, "reader"_kj, "configs/imagenet_resized_crop.toml"_kj,
           "--dump"_kj, folder.asPtr()}) {
    words.add(word);
  }
  for (auto setting: settings) {
    words.add("--set"_kj);
    words.add(setting);
  }
  auto dumped = Command(words, surroundings).wait();
  INFO(dumped.errors);
  REQUIRE(dumped.exitCode == 0);
  auto compared = Command({python(), "tests/peers/compare_crops.py", folder}).wait();
  if (compared.exitCode == NO_PILLOW) {
    return {nullptr, "no Python with Pillow (RUNNER_PYTHON can name one)"};
  }
  INFO(compared.errors);
  REQUIRE(compared.exitCode == 0);
  return {kj::mv(compared.output)};
}

TEST_CASE("resized crops of ImageNet's photographs are those of Pillow") {
  struct Row {
    kj::StringPtr crop;
    double mean, largest;  // difference in grey levels, at most
  };
  // Pillow rounds twice. Crops for 64 pixels are shrunk while they are decoded.
  for (auto& row: {Row{"data.augment.crop=224", 0.3, 1.1}, Row{"data.augment.crop=64", 0.5, 30}}) {
    CAPTURE(row.crop);
    auto compared = compare({row.crop});
    if (compared.whyNot != nullptr) SKIP_CASE(compared.whyNot);
    CHECK(compared.number("images") == 200);
    CHECK(compared.number("mean") < row.mean);
    CHECK(compared.number("largest") < row.largest);
  }
}

TEST_CASE("changed colours are those of torchvision, and hidden squares have the mean") {
  auto compared = compare({"data.augment.brightness=0.4", "data.augment.contrast=0.4",
      "data.augment.saturation=0.4", "data.augment.lighting=0.1", "data.augment.cutout=60"});
  if (compared.whyNot != nullptr) SKIP_CASE(compared.whyNot);
  if (tools::numberIn(compared.line, "colours_largest") == nullptr) {
    SKIP_CASE("no Python with torchvision (RUNNER_PYTHON can name one)");
  }
  CHECK(compared.number("images") == 200);
  CHECK(compared.number("mean") < 0.3);
  // In grey levels. torchvision's greys have 0.2989 of red in place of 0.299.
  CHECK(compared.number("colours_largest") < 0.05);
}

}  // namespace
}  // namespace tests
