// Crops of photographs, beside those of Pillow.
#include <doctest/doctest.h>
#include <stdlib.h>

#include "io/testing/scratch.h"
#include "tests/command.h"
#include "tests/run.h"
#include "tests/skip.h"
#include "tests/text.h"
#include "tools/bench/process.h"

namespace tests {
namespace {

constexpr int NO_PILLOW = 77;

kj::StringPtr python() {
  auto named = ::getenv("RUNNER_PYTHON");
  return named == nullptr || *named == 0 ? "python3"_kj : kj::StringPtr(named);
}

TEST_CASE("resized crops of ImageNet's photographs are those of Pillow") {
  if (io::sharedDatasets("imagenet-sample/labels.tsv") == nullptr) {
    SKIP_CASE("RUNNER_DATASETS has no imagenet-sample");
  }
  struct Row {
    uint crop;
    double mean, largest;  // difference in grey levels, at most
  };
  // Pillow rounds twice. Crops for 64 pixels are shrunk while they are decoded.
  for (auto& row: {Row{224, 0.3, 1.1}, Row{64, 0.5, 30}}) {
    CAPTURE(row.crop);
    io::Scratch scratch;
    auto folder = scratch.path("crops");
    auto size = kj::str("data.augment.crop=", row.crop), cache = cacheSetting();
    kj::StringPtr variables[] = {cache};
    Command::Surroundings surroundings{.environment = variables};
    kj::StringPtr words[] = {"tools/bench/bench", "reader", "configs/imagenet_resized_crop.toml",
        "--set", size, "--dump", folder};
    auto dumped = Command(words, surroundings).wait();
    INFO(dumped.errors);
    REQUIRE(dumped.exitCode == 0);
    auto compared = Command({python(), "tests/peers/compare_crops.py", folder}).wait();
    if (compared.exitCode == NO_PILLOW) {
      SKIP_CASE("no Python with Pillow (RUNNER_PYTHON can name one)");
    }
    INFO(compared.errors);
    REQUIRE(compared.exitCode == 0);
    auto number = [&](kj::StringPtr key) {
      return KJ_REQUIRE_NONNULL(tools::numberIn(compared.output, key), compared.output);
    };
    CHECK(number("images") == 200);
    CHECK(number("mean") < row.mean);
    CHECK(number("largest") < row.largest);
  }
}

}  // namespace
}  // namespace tests
