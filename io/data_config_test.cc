#include "io/data_config.h"

#include <doctest/doctest.h>

namespace io {

namespace {

struct Read {
  DataConfig config;
  kj::String errors;
};

Read readText(kj::StringPtr text) {
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", text, diagnostics);
  configs::Reading reading{diagnostics, {}};
  auto config = configs::readDocument(*document, reading, &DataConfig::read);
  auto errors = diagnostics.count() == 0 ? kj::String() : diagnostics.format("x.toml");
  return {kj::mv(config), kj::mv(errors)};
}

bool contains(kj::StringPtr text, kj::StringPtr part) {
  for (size_t i = 0; i + part.size() <= text.size(); ++i) {
    if (text.slice(i).startsWith(part)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("DataConfig: every key but the data set has a default") {
  auto read = readText("dataset = \"mnist\"\n");
  CHECK(read.errors == "");
  auto& config = read.config;
  CHECK(kj::StringPtr(config.dataset->name) == "mnist");
  CHECK(config.source == nullptr);
  CHECK(config.batchSize == 128);
  CHECK(config.part == TrainingPart::SPLIT);
  CHECK(config.order == RecordOrder::SHUFFLED);
  CHECK(config.heldOut == 0);
  CHECK(config.validateOn == ValidationSet::VALIDATION);
  CHECK(config.validation == ValidationPart::SPLIT);
  CHECK(config.readerThreads == 2);
  CHECK(config.encoding == Encoding::RAW);
  CHECK(config.resizeShortSide == 0);
  CHECK(config.onBadRecord == BadRecordPolicy::FAIL);
  CHECK(config.augment.crop == 0);
  CHECK(config.validationViews.begin() == CENTRE_VIEW.begin());
  CHECK(config.augment.pad == 0);
  CHECK(config.augment.padMode == Padding::REFLECT);
  CHECK(config.augment.mirror == Mirror::NEVER);
  CHECK(!config.augment.meanImage);
  CHECK(config.augment.mean.size() == 0);
  CHECK(config.augment.scale == 1);
  CHECK(contains(readText("").errors, "dataset"));
}

TEST_CASE("DataConfig: changes of colours and hidden squares are off without their keys") {
  auto without = readText("dataset = \"cifar10\"\n");
  CHECK(!without.config.augment.colours.any());
  CHECK(without.config.augment.cutout == 0);
  auto all = readText(
      "dataset = \"cifar10\"\n"
      "augment = { brightness = 0.4, contrast = 0.3, saturation = 1, lighting = 0.1, cutout = 16 "
      "}\n");
  CHECK(all.errors == "");
  auto& colours = all.config.augment.colours;
  CHECK(colours.brightness == 0.4);
  CHECK(colours.contrast == 0.3);
  CHECK(colours.saturation == 1);
  CHECK(colours.lighting == 0.1);
  CHECK(all.config.augment.cutout == 16);
  // Grey images have a brightness and a contrast.
  CHECK(readText("dataset = \"mnist\"\naugment = { brightness = 0.4, contrast = 0.3 }\n").errors ==
        "");
}

TEST_CASE("DataConfig: reads the chunks per window, and has a default for the records per chunk") {
  auto read = readText("dataset = \"mnist\"\norder = \"chunks\"\nwindow_chunks = 7\n");
  CHECK(read.errors == "");
  CHECK(read.config.order == RecordOrder::CHUNKS);
  CHECK(read.config.chunks.records == 128);
  CHECK(read.config.chunks.window == 7);
}

TEST_CASE("DataConfig: `mean` is the word image, or numbers") {
  auto image =
      readText("dataset = \"cifar10\"\naugment = { crop = 28, mirror = true, mean = \"image\" }\n");
  CHECK(image.errors == "");
  CHECK(image.config.augment.crop == 28);
  CHECK(image.config.augment.mirror == Mirror::RANDOM);
  CHECK(image.config.augment.meanImage);

  auto numbers = readText(
      "dataset = \"cifar10\"\naugment = { mean = [123.68, 116.779, 103.939], "
      "deviation = [50], scale = 0.5 }\n");
  CHECK(numbers.errors == "");
  CHECK(!numbers.config.augment.meanImage);
  CHECK(numbers.config.augment.mean.size() == 3);
  CHECK(numbers.config.augment.mean[1] == 116.779);
  CHECK(numbers.config.augment.deviation.size() == 1);
  CHECK(numbers.config.augment.scale == 0.5);

  CHECK(contains(readText("dataset = \"cifar10\"\naugment = { mean = \"imag\" }\n").errors,
      "x.toml:2:20: error: `imag` is not a known `mean`"));
}

TEST_CASE("DataConfig: an empty source is an error, not the current folder") {
  CHECK(readText("dataset = 'mnist'\nsource = ''\n").errors ==
        "x.toml:2:10: error: `source` is empty\n"
        "  2 | source = ''\n"
        "    |          ^^\n"
        "  help: name a folder or an archive, or leave it out\n"
        "1 error in x.toml; nothing was started.\n");
}

TEST_CASE("DataConfig: image folders keep JPEG files by default") {
  CHECK(readText("dataset = \"image_folder\"\n").config.encoding == Encoding::JPEG);
  CHECK(readText("dataset = \"image_folder\"\nencoding = \"raw\"\n").config.encoding ==
        Encoding::RAW);
}

TEST_CASE("DataConfig: settings that the shape of the images forbids are errors at their places") {
  auto crop = readText("dataset = \"mnist\"\n[augment]\ncrop = 29\n");
  CHECK(contains(
      crop.errors, "x.toml:3:8: error: `crop` is larger than the images, which have 28×28 pixels"));
  auto resized = readText("dataset = \"mnist\"\nresize_short_side = 32\n[augment]\ncrop = 29\n");
  CHECK(resized.errors == "");
  auto photos =
      readText("dataset = \"image_folder\"\nresize_short_side = 100\n[augment]\ncrop = 224\n");
  CHECK(contains(photos.errors, "`crop` is larger than the images, whose shorter side gets 100"));
  auto mean = readText("dataset = \"cifar10\"\n[augment]\nmean = [1, 2]\ndeviation = [1, 0, 1]\n");
  CHECK(contains(mean.errors, "`mean` has 2 numbers for images of 3 channels"));
  CHECK(contains(mean.errors, "x.toml:4:17: error"));
}

TEST_CASE("DataConfig: `mirror` is false, true for random mirroring, or \"alternate\"") {
  auto mirrorOf = [](kj::StringPtr value) {
    auto read = readText(kj::str("dataset = \"mnist\"\n[augment]\nmirror = ", value, "\n"));
    CHECK(read.errors == "");
    return read.config.augment.mirror;
  };
  CHECK(mirrorOf("false") == Mirror::NEVER);
  CHECK(mirrorOf("true") == Mirror::RANDOM);
  CHECK(mirrorOf("\"alternate\"") == Mirror::ALTERNATE);
}

TEST_CASE("DataConfig: a crop may be larger than an image by its padding") {
  auto crop = [](uint side) {
    return readText(kj::str("dataset = \"mnist\"\n[augment]\npad = 2\ncrop = ", side, "\n"));
  };
  CHECK(crop(32).errors == "");
  CHECK(contains(crop(33).errors,
      "x.toml:4:8: error: `crop` is larger than the images, which have 28×28 pixels plus 2 on "
      "each side"));
  auto photos = [](uint side) {
    return readText(
        kj::str("dataset = \"image_folder\"\nresize_short_side = 100\n"
                "[augment]\npad = 2\ncrop = ",
            side, "\n"));
  };
  CHECK(photos(104).errors == "");
  CHECK(contains(photos(105).errors, "make data.resize_short_side at least 101"));
}

TEST_CASE("DataConfig: the weights of the views of an image add up to 1") {
  for (auto& row: VALIDATION_VIEWS) {
    float sum = 0;
    for (auto& view: row.value) sum += view.weight;
    CHECK(sum == 1);
  }
}

TEST_CASE("DataConfig: every validation uses the views, or only the last one") {
  auto every = readText("dataset = \"mnist\"\nvalidation_views = \"mirror_shift\"\n");
  CHECK(every.errors == "");
  CHECK(every.config.views(false).size() == 6);
  CHECK(every.config.views(true).size() == 6);
  auto last = readText(
      "dataset = \"mnist\"\nvalidation_views = \"mirror\"\n"
      "validation_views_at = \"last\"\n");
  CHECK(last.errors == "");
  CHECK(last.config.views(false).size() == 1);
  CHECK(last.config.views(true).size() == 2);
}

TEST_CASE("DataConfig: the reference names the keys of [data] and of its sections") {
  auto text = configs::printReference("data", "", &DataConfig::read);
  for (auto key: {"dataset", "source", "batch_size", "part", "order", "held_out", "validate_on",
           "validation", "validation_views", "validation_views_at", "reader_threads", "encoding",
           "resize_short_side", "on_bad_record", "crop", "crop_at", "pad", "pad_mode", "pad_value",
           "mirror", "mean", "deviation", "scale"}) {
    CHECK_MESSAGE(contains(text, kj::str("`", key, "`")), kj::StringPtr(key).cStr());
  }
}

}  // namespace io
