#include "io/augment_config.h"

#include "configs/language/word.h"

namespace io {

namespace {

constexpr configs::Word<CropPlace> CROP_PLACES[] = {
    {"random", "At a random place, drawn for each image and pass.", CropPlace::RANDOM},
    {"centre", "In the middle, like validation images.", CropPlace::CENTRE},
};

constexpr configs::Word<Padding> PADDINGS[] = {
    {"reflect", "The image mirrored at its outermost pixels, which are not repeated.",
        Padding::REFLECT},
    {"edge", "The outermost pixels, repeated.", Padding::EDGE},
    {"value", "The grey level `pad_value`.", Padding::VALUE},
};

constexpr configs::RealLimits GREY_LEVELS = {.atLeast = 0, .atMost = 255};

void readPadding(configs::Reader& reader, AugmentConfig& config) {
  config.pad = reader.integer("pad",
      "Width of the padding around the stored image, in pixels. Random crops may include it. The "
      "program computes the padding when it crops an image, and never stores it. A centre crop "
      "includes padding only if the crop is larger than the image.",
      SIDES, 0);
  config.padMode = configs::chooseWord(reader, "pad_mode",
      "Which values the pixels outside of the image have. They also appear in views of validation "
      "images that are moved over the edge. The mean image is padded in the same way, but if "
      "`pad_mode = \"value\"`, its outermost pixels are repeated.",
      PADDINGS, "reflect");
  config.padValue = reader.real("pad_value",
      "The grey level outside of the image if `pad_mode = \"value\"`. `mean` is subtracted from "
      "it, too.",
      GREY_LEVELS, 0);
  if (config.padValue != 0 && config.padMode != Padding::VALUE) {
    reader.error("pad_value", "`pad_value` has no effect without `pad_mode = \"value\"`",
        "set pad_mode = \"value\", or leave `pad_value` out", {"pad_mode"_kj});
  }
}

// Reads a least and a largest number.
void readRange(configs::Reader& reader, kj::StringPtr key, kj::StringPtr doc,
    configs::RealLimits limits, double& least, double& most) {
  auto numbers = reader.reals(key, doc, limits);
  if (numbers.size() == 0) return;
  if (numbers.size() != 2 || numbers[0] > numbers[1]) {
    reader.error(key, kj::str("`", key, "` must have two numbers, the smaller one first"),
        kj::str("write for example ", key, " = [", least, ", ", most, "]"));
    return;
  }
  least = numbers[0];
  most = numbers[1];
}

// Reads the keys for crops of random sizes. The resolved experiment leaves these keys out if the
// file has none of them.
void readResizedCrop(configs::Reader& reader, AugmentConfig& config) {
  bool resizes = reader.has("crop_area");
  bool hasAny = resizes || reader.has("crop_aspect") || reader.has("centre_crop");
  if (!hasAny && !reader.isManual()) return;
  constexpr configs::RealLimits SHARES = {.above = 0, .atMost = 1};
  double areaMin = 0.08, areaMax = 1;
  readRange(reader, "crop_area",
      "The smallest and the largest share of the image's area that a training crop has. Each crop "
      "is drawn at random, and then resized to `crop` × `crop` pixels. [0.08, 1] is usual for "
      "ImageNet (Szegedy et al. 2015, arXiv 1409.4842). By default, crops are not resized, and "
      "have `crop` × `crop` pixels of the stored image. With this key, `crop` must be set. `pad` "
      "and `crop_at = \"centre\"` are refused.",
      SHARES, areaMin, areaMax);
  config.aspectMin = 0.75;
  config.aspectMax = 4 / 3.0;
  readRange(reader, "crop_aspect",
      "With `crop_area`: the smallest and the largest ratio of a training crop's width to its "
      "height. The logarithm of the ratio is drawn uniformly. Default: [0.75, 1.3333333333333333].",
      {.above = 0, .atMost = 100}, config.aspectMin, config.aspectMax);
  config.centreCrop = reader.real("centre_crop",
      "With `crop_area`: validation cuts a square out of the middle of the image and resizes it to "
      "`crop` × `crop` pixels. This is the side of the square, as a share of the image's shorter "
      "side. The default, 0.875, is 224 / 256.",
      SHARES, 0.875);
  for (auto key: {"crop_aspect"_kj, "centre_crop"_kj}) {
    if (resizes || !reader.has(key)) continue;
    reader.error(key, kj::str("`", key, "` has no effect without `crop_area`"),
        "set crop_area = [0.08, 1], or leave it out", {"crop_area"_kj});
  }
  if (!resizes) return;
  config.areaMin = areaMin;
  config.areaMax = areaMax;
  auto refuse = [&](kj::StringPtr key, kj::StringPtr problem, kj::StringPtr wayOut) {
    reader.error(key, kj::str(problem, " with `crop_area`"), wayOut, {"crop_area"_kj});
  };
  if (config.crop == 0) {
    refuse("crop", "`crop` must be set",
        "set the size to which crops are resized, such as crop = 224");
  }
  if (config.pad > 0) refuse("pad", "`pad` has no effect", "leave `pad` out");
  if (config.cropAt == CropPlace::CENTRE) {
    refuse("crop_at", "`crop_at` has no effect", "leave `crop_at` out");
  }
}

// Reads the keys that change colours in training. The resolved experiment leaves out the keys that
// the file does not have.
ColourRanges readColours(configs::Reader& reader) {
  constexpr configs::RealLimits SPREADS = {.atLeast = 0, .atMost = 1};
  auto read = [&](kj::StringPtr key, kj::StringPtr doc) {
    return reader.maybeReal(key, doc, SPREADS).orDefault(0);
  };
  ColourRanges ranges;
  ranges.brightness = read("brightness",
      "With the value x, each training crop, padding included, is multiplied by a random factor "
      "between 1 - x and 1 + x. 0.4 is usual for ImageNet, also for `contrast` and `saturation`. "
      "The order of the three does not matter, because values are not clipped at 0 and 255. If a "
      "worker has GPUs, its reader threads change the colours, and send floats to the GPU instead "
      "of bytes. 0, the default, changes nothing.");
  ranges.contrast = read("contrast",
      "With the value x, a random factor between 1 - x and 1 + x multiplies the difference between "
      "each pixel of a training crop and the crop's mean grey level. 0, the default, changes "
      "nothing.");
  ranges.saturation = read("saturation",
      "With the value x, a random factor between 1 - x and 1 + x multiplies the difference between "
      "each pixel of a training crop and the grey level of that pixel (0.299 red + 0.587 green + "
      "0.114 blue). Only for images with three channels. 0, the default, changes nothing.");
  ranges.lighting = read("lighting",
      "Adds a random colour to each training crop, after brightness, contrast and saturation. The "
      "colour is the sum of ImageNet's principal components, each multiplied by its eigenvalue and "
      "by a random number from a normal distribution with this standard deviation (Krizhevsky et "
      "al. 2012, section 4.1, with the components that MXNet uses). 0.1 is usual. Only for images "
      "with three channels. 0, the default, adds nothing.");
  return ranges;
}

Mirror readMirror(configs::Reader& reader) {
  auto mirror = reader.flagOrWord("mirror",
      "Whether training images are mirrored left to right with probability 1/2, drawn for each "
      "image and pass. With `\"alternate\"`, this is drawn for the first pass only. The second, "
      "fourth, sixth … pass mirrors exactly the images that the first pass did not mirror, and the "
      "other passes mirror the same images as the first (Jordan 2024, arXiv 2404.00498, section "
      "3.6).",
      "alternate", false);
  KJ_SWITCH_ONEOF(mirror) {
    KJ_CASE_ONEOF(flag, bool) {
      return flag ? Mirror::RANDOM : Mirror::NEVER;
    }
    KJ_CASE_ONEOF(word, kj::String) {
      return Mirror::ALTERNATE;
    }
  }
  KJ_UNREACHABLE;
}

}  // namespace

AugmentConfig AugmentConfig::read(configs::Reader& reader) {
  AugmentConfig config;
  readPadding(reader, config);
  config.crop = reader.integer("crop",
      "Side of the square that is cut out of each image, in pixels. 0 = a crop as large as the "
      "image. Without `pad`, that is the whole image.",
      SIDES, 0);
  config.cropAt = configs::chooseWord(
      reader, "crop_at", "Where training images are cropped.", CROP_PLACES, "random");
  readResizedCrop(reader, config);
  config.mirror = readMirror(reader);
  auto mean = reader.wordOrReals("mean",
      "What is subtracted from each pixel. `\"image\"` = the mean of the training images before "
      "augmentation, pixel by pixel. It cannot be combined with `crop_area` or random colours. A "
      "list = one grey level (0 to 255) per channel, or one for all channels. By default, nothing "
      "is subtracted.",
      "image", {});
  KJ_SWITCH_ONEOF(mean) {
    KJ_CASE_ONEOF(word, kj::String) {
      config.meanImage = true;
      if (config.resizes()) {
        reader.error("mean", "crops of different sizes (`crop_area`) have no common mean image",
            "give one number per channel, such as mean = [123.68, 116.779, 103.939]",
            {"crop_area"_kj});
      }
    }
    KJ_CASE_ONEOF(numbers, kj::Array<double>) {
      config.mean = kj::mv(numbers);
    }
  }
  config.deviation = reader.reals("deviation",
      "What the result of the subtraction is divided by: one number per channel, or one for all "
      "channels, in grey levels. By default, the result is not divided.",
      {.above = 0});
  config.scale = reader.real("scale",
      "The result of the division is multiplied by this number. 0.00392156862745098 = 1/255 gives "
      "pixels from 0 to 1.",
      {.above = 0}, 1);
  config.colours = readColours(reader);
  if (config.meanImage && config.colours.any()) {
    reader.error("mean",
        "`mean = \"image\"` cannot be combined with random colours (`brightness`, `contrast`, "
        "`saturation`, `lighting`)",
        "give one number per channel, such as mean = [123.68, 116.779, 103.939]",
        {"brightness"_kj, "contrast"_kj, "saturation"_kj, "lighting"_kj});
  }
  config.cutout =
      reader
          .maybeInteger("cutout",
              "Side, in pixels, of a square in each training image that is set to 0 after all "
              "other changes. If `mean` is set, 0 stands for the mean. The centre of the square is "
              "a random pixel of the image, so the square may reach over the edge (DeVries and "
              "Taylor 2017, arXiv 1708.04552). If a worker has GPUs, its reader threads set the "
              "square. 0, the default, changes nothing.",
              SIDES)
          .orDefault(0);
  return config;
}

}  // namespace io
