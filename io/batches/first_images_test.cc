#include "io/batches/first_images.h"

#include <doctest/doctest.h>

#include "io/batches/batcher.h"
#include "io/datasets/import.h"
#include "io/testing/scratch.h"

namespace io {

namespace {

constexpr ImageShape SHAPE = {1, 6, 6};
constexpr size_t CROPPED = 4 * 4;

// Twelve images, of which number 2 is bad. They are cropped to 4×4 and mirrored in training.
struct Packed {
  Scratch scratch;
  DataConfig config;

  Packed(): config(testConfig("image_folder", kj::str(scratch.path("")))) {
    for (auto file: {TRAINING_FILE, VALIDATION_FILE}) {
      auto writer = RecordWriter::create(scratch.path(file));
      for (uint i = 0; i < 12; ++i) {
        auto pixels = kj::heapArray<kj::byte>(SHAPE.size());
        for (auto p: kj::indices(pixels)) pixels[p] = i * 10 + p;
        if (i == 2) {
          writer->add(i, i, Encoding::JPEG, SHAPE, kj::StringPtr("none").asBytes());
        } else {
          writer->add(i, i, Encoding::RAW, SHAPE, pixels);
        }
      }
      writer->finish();
    }
    config.batchSize = 4;
    config.augment.crop = 4;
    config.augment.mirror = Mirror::RANDOM;
    config.augment.scale = 0.5;
    config.onBadRecord = BadRecordPolicy::SKIP;
  }

  kj::Own<Dataset> open() const { return openDataset(config, unheard()); }
};

}  // namespace

TEST_CASE("firstImages: gives the pixels that validation would see of the same records") {
  Packed packed;
  auto dataset = packed.open();
  auto images = firstImages(*dataset, packed.config, 5);
  // One of the first five is bad.
  REQUIRE(images.size() == 4 * CROPPED);
  auto validation = Batcher::validation(*dataset, packed.config, 1, 0);
  auto& batch = KJ_ASSERT_NONNULL(validation->next());
  REQUIRE(batch.images == 3);
  CHECK(images.slice(0, 3 * CROPPED) == batch.pixels.slice(0, 3 * CROPPED));
  // Row 1, column 1 of image 4, scaled by a half.
  CHECK(images[3 * CROPPED] == (4 * 10 + 7) * 0.5f);
}

TEST_CASE("firstImages: leaves out held-out records, and may give fewer images than asked for") {
  Packed packed;
  packed.config.heldOut = 4;
  auto dataset = packed.open();
  auto images = firstImages(*dataset, packed.config, 100);
  REQUIRE(images.size() == 8 * CROPPED);
  CHECK(images[0] == (4 * 10 + 7) * 0.5f);
  CHECK(firstImages(*dataset, packed.config, 0).size() == 0);
}

TEST_CASE("firstImages: a bad record ends the run if the policy is to fail") {
  Packed packed;
  packed.config.onBadRecord = BadRecordPolicy::FAIL;
  auto dataset = packed.open();
  CHECK(firstImages(*dataset, packed.config, 2).size() == 2 * CROPPED);
  auto sentence = thrownBy([&]() { firstImages(*dataset, packed.config, 3); });
  INFO(sentence.cStr());
  CHECK(sentence.startsWith("record 2 (image 2 of the source, counted from 0) of "));
  CHECK(sentence.endsWith("on_bad_record = \"skip\""));
}

}  // namespace io
