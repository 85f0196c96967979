#include "runner/export/preprocessing.h"

#include <kj/vector.h>

#include "runner/text/numbers.h"

namespace runner {

namespace {

kj::StringPtr nameOf(io::Padding mode) {
  switch (mode) {
    case io::Padding::REFLECT:
      return "reflect"_kj;
    case io::Padding::EDGE:
      return "edge"_kj;
    case io::Padding::VALUE:
      return "value"_kj;
  }
  KJ_UNREACHABLE;
}

kj::String listOf(kj::ArrayPtr<const float> numbers) {
  return kj::str("[",
      kj::strArray(
          KJ_MAP(x, numbers) { return shortest(x); }, ","),
      "]");
}

// Returns the part of the mean image that the centre view subtracts.
kj::Array<float> centreOfMeanImage(const io::Augmenter& augmenter) {
  // Augments an image of zeros, so that the result is the negated mean image of the view.
  io::AugmentConfig plain;
  plain.pad = augmenter.shape.height;
  plain.padMode = augmenter.padMode == io::Padding::VALUE ? io::Padding::EDGE : augmenter.padMode;
  plain.crop = augmenter.shape.height;
  auto& stored = augmenter.stored;
  io::Augmenter subtracting(plain, augmenter.shape, stored, augmenter.meanImage);
  auto zeros = kj::heapArray<kj::byte>(stored.size());
  for (auto& pixel: zeros) pixel = 0;
  auto means = kj::heapArray<float>(augmenter.shape.size());
  subtracting.apply({stored, io::Layout::PLANES, zeros}, augmenter.centre(stored), means);
  for (float& mean: means) mean = 0 - mean;
  return means;
}

}  // namespace

bool Preprocessing::subtracts() const {
  for (float mean: means) {
    if (mean != 0) return true;
  }
  return false;
}

bool Preprocessing::multiplies() const {
  for (float factor: factors) {
    if (factor != 1) return true;
  }
  return false;
}

kj::String Preprocessing::toJson() const {
  kj::Vector<kj::String> steps;
  auto add = [&](kj::StringPtr key, kj::String value) {
    steps.add(kj::str("\"", key, "\":", value));
  };
  if (images.size() > 0) {
    add("images", kj::str("[", images.channels, ",", images.height, ",", images.width, "]"));
  }
  if (resizeShortSide > 0) add("resize_short_side", kj::str(resizeShortSide));
  if (centreCrop > 0) add("centre_crop", kj::str(centreCrop));
  if (crop > 0) add("crop", kj::str(crop));
  if (pad > 0) {
    add("pad", kj::str(pad));
    add("pad_mode", kj::str("\"", nameOf(padMode), "\""));
    if (padMode == io::Padding::VALUE) add("pad_value", shortest(padValue));
  }
  if (hasMeanImage()) {
    add("mean_image", kj::str("true"));
  } else {
    add("mean", listOf(means));
  }
  add("factor", listOf(factors));
  return kj::str("{", kj::strArray(steps, ","), "}");
}

Preprocessing preprocessingOf(const io::DataConfig& config, const io::Augmenter& augmenter) {
  auto& augment = config.augment;
  return {.images = config.dataset->source->shape,
      .view = augmenter.shape,
      .resizeShortSide = config.resizeShortSide,
      .crop = augment.crop,
      .centreCrop = augment.resizes() ? augment.centreCrop : 0,
      .pad = augment.pad,
      .padMode = augment.padMode,
      .padValue = augmenter.padValue,
      .means = augmenter.meanImage.size() > 0 ? centreOfMeanImage(augmenter)
                                              : kj::heapArray<float>(augmenter.means.asPtr()),
      .factors = kj::heapArray<float>(augmenter.factors.asPtr())};
}

}  // namespace runner
