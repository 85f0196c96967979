#include "runner/export/preprocessing.h"

#include <doctest/doctest.h>

#include "io/testing/scratch.h"
#include "tests/text.h"

namespace runner {
namespace {

TEST_CASE("Preprocessing: JSON names the steps that an experiment has, and no others") {
  auto config = io::testConfig("fashion_mnist");
  io::Augmenter plain(config.augment, {1, 28, 28}, {1, 28, 28}, nullptr);
  CHECK(
      preprocessingOf(config, plain).toJson() == R"({"images":[1,28,28],"mean":[0],"factor":[1]})");
  auto photographs = io::testConfig("image_folder");
  photographs.resizeShortSide = 72;
  auto& augment = photographs.augment;
  augment.crop = 64;
  augment.pad = 4;
  augment.padMode = io::Padding::VALUE;
  augment.padValue = 128;
  augment.mean = kj::arr(123.68, 116.779, 103.939);
  augment.deviation = kj::arr(58.0);
  io::Augmenter augmenter(augment, {3, 64, 64}, {0, 0, 0}, nullptr);
  auto steps = preprocessingOf(photographs, augmenter);
  CHECK(steps.toJson() ==
        R"({"resize_short_side":72,"crop":64,"pad":4,"pad_mode":"value","pad_value":128,)"
        R"("mean":[123.68,116.779,103.939],"factor":[0.01724138,0.01724138,0.01724138]})");
  CHECK(steps.subtracts());
  CHECK(steps.multiplies());
}

TEST_CASE("Preprocessing: subtracts the part of a mean image that is under the centre crop") {
  // A crop inside the image, and crops that reach over its edges.
  for (auto mode: {io::Padding::REFLECT, io::Padding::EDGE, io::Padding::VALUE}) {
    for (uint crop: {3, 6, 9}) {
      auto config = io::testConfig("cifar10");
      config.augment.crop = crop;
      config.augment.pad = 3;
      config.augment.padMode = mode;
      config.augment.padValue = 100;
      config.augment.scale = 0.25;
      io::ImageShape stored = {3, 6, 5}, shape = {3, crop, crop};
      auto mean = kj::heapArray<float>(stored.size());
      auto pixels = kj::heapArray<kj::byte>(stored.size());
      for (auto i: kj::indices(mean)) mean[i] = 10 + i / 7.0f;
      for (auto i: kj::indices(pixels)) pixels[i] = kj::byte(i * 37);
      io::Augmenter augmenter(config.augment, shape, stored, mean);
      auto steps = preprocessingOf(config, augmenter);
      REQUIRE(steps.hasMeanImage());
      REQUIRE(steps.means.size() == shape.size());
      auto normalised = kj::heapArray<float>(shape.size());
      auto cut = kj::heapArray<kj::byte>(shape.size());
      io::ImageView image{stored, io::Layout::PLANES, pixels};
      augmenter.apply(image, augmenter.centre(stored), normalised);
      augmenter.cut(image, augmenter.centre(stored), cut);
      for (auto i: kj::indices(cut)) {
        CHECK((cut[i] - steps.means[i]) * steps.factors[i / (crop * crop)] == normalised[i]);
      }
    }
  }
}

}  // namespace
}  // namespace runner
