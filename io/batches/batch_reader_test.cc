// What a Batcher does with records that cannot be read.
#include "io/batches/batch_reader.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include <cstring>

#include "io/batches/first_images.h"
#include "io/batches/packed_records.h"
#include "io/images/jpeg.h"

namespace io {

TEST_CASE("Batcher: reports a bad record once, however many views it has") {
  const uint bad[] = {3};
  Packed packed(8, 8, bad);
  packed.config.onBadRecord = BadRecordPolicy::SKIP;
  packed.config.validationViews = row(VALIDATION_VIEWS, "mirror")->value;
  auto dataset = packed.open();
  auto batcher = Batcher::validation(*dataset, packed.config, 1, 0);
  for (uint view = 0; view < 2; ++view) {
    CHECK(KJ_ASSERT_NONNULL(batcher->next()).images == 7);
  }
  CHECK(batcher->next() == nullptr);
  CHECK(batcher->counts().badRecords == 1);
  CHECK(batcher->takeReports().size() == 1);
}

TEST_CASE("Batcher: leaves out of all views a record that only some of them could decode") {
  Packed packed(8, 8);
  // The crop of the centre ends before the damage. The views that are moved over the edge need the
  // whole file.
  constexpr ImageShape TALL = {1, 200, 4};
  auto pixels = kj::heapArray<kj::byte>(TALL.size());
  for (auto p: kj::indices(pixels)) pixels[p] = p * p % 251;
  auto jpeg = encodeJpeg({TALL, Layout::PLANES, pixels});
  auto writer = RecordWriter::create(packed.scratch.path(VALIDATION_FILE));
  for (uint64_t i = 0; i < 8; ++i) {
    writer->add(i, i, Encoding::JPEG, TALL, jpeg.slice(0, i == 3 ? jpeg.size() - 60 : jpeg.size()));
  }
  writer->finish();
  packed.config.onBadRecord = BadRecordPolicy::SKIP;
  packed.config.validationViews = row(VALIDATION_VIEWS, "mirror_shift")->value;
  auto dataset = packed.open();
  auto batcher = Batcher::validation(*dataset, packed.config, 1, 0);
  for (size_t view = 0; view < packed.config.validationViews.size(); ++view) {
    CHECK(KJ_ASSERT_NONNULL(batcher->next()).images == 7);
  }
  CHECK(batcher->next() == nullptr);
  CHECK(batcher->counts().badRecords == 1);
}

TEST_CASE(
    "Batcher: a bad record ends the run when its batch is due, and the error names record and "
    "database") {
  const uint bad[] = {21};
  Packed packed(50, 0, bad);
  auto dataset = packed.open();
  uint64_t step = 0;
  {
    Stream stream(packed.config, 50, 5, 1, 0);
    Stream::Sample samples[8];
    for (bool found = false; !found; step += !found) {
      stream.samples(step, samples);
      for (auto& sample: samples) found = found || sample.record == 21;
    }
  }
  for (uint threads: {0, 1, 4}) {
    packed.config.readerThreads = threads;
    auto batcher = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
    bytesOf(*batcher, step);
    auto message = thrownBy([&]() { batcher->next(); });
    CHECK(message.startsWith(kj::str("record 21 (image 21 of the source, counted from 0) of ",
        dataset->training().path(), " is bad: ")));
    CHECK(message.endsWith("or set data.on_bad_record = \"skip\""));
    CHECK(thrownBy([&]() { batcher->next(); }) == message);
  }
}

TEST_CASE("Batcher: bad records beside each other are counted once each") {
  const uint bad[] = {0, 1, 2, 3, 4, 5};
  Packed packed(48, 48, bad);
  packed.config.onBadRecord = BadRecordPolicy::SKIP;
  packed.config.order = RecordOrder::STORED;
  packed.config.batchSize = 16;
  auto dataset = packed.open();
  auto batcher = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  bytesOf(*batcher, 3);
  CHECK(batcher->counts().badRecords == 6);
}

TEST_CASE("Batcher: counts and names skipped records, and reads the next good one instead") {
  const uint bad[] = {3, 21, 22, 40};
  Packed packed(48, 48, bad);
  packed.config.onBadRecord = BadRecordPolicy::SKIP;
  auto dataset = packed.open();
  kj::Vector<kj::Array<kj::byte>> runs;
  for (uint threads: {0, 1, 4}) {
    packed.config.readerThreads = threads;
    auto batcher = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
    runs.add(bytesOf(*batcher, 6));
    CHECK(batcher->counts().badRecords >= 4);
    auto reports = batcher->takeReports();
    CHECK(reports.size() >= 4);
    CHECK(reports[0].startsWith("record "));
    CHECK(batcher->takeReports().size() == 0);
  }
  for (auto& run: runs) CHECK(run == runs[0]);

  // Without bad records a batch would have the labels of the stream.
  auto batcher = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  Stream stream(packed.config, 48, 5, 1, 0);
  Stream::Sample samples[8];
  auto isBad = [&](uint64_t record) {
    return record == 3 || record == 21 || record == 22 || record == 40;
  };
  for (uint step = 0; step < 6; ++step) {
    stream.samples(step, samples);
    auto& batch = KJ_ASSERT_NONNULL(batcher->next());
    for (uint i = 0; i < 8; ++i) {
      uint from = i;
      while (isBad(samples[from].record)) from = (from + 1) % 8;
      CHECK(batch.labels[i] == int32_t(samples[from].record));
    }
  }

  auto validation = Batcher::validation(*dataset, packed.config, 1, 0);
  uint images = 0;
  for (;;) {
    KJ_IF_MAYBE(batch, validation->next()) {
      images += batch->images;
    } else {
      break;
    }
  }
  CHECK(images == 44);
  CHECK(validation->counts().badRecords == 4);
}

TEST_CASE("Batcher: a batch without any good record is an error, even if bad ones may be skipped") {
  const uint bad[] = {0, 1, 2, 3};
  Packed packed(4, 0, bad);
  packed.config.onBadRecord = BadRecordPolicy::SKIP;
  auto dataset = packed.open();
  auto batcher = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  CHECK(thrownBy([&]() {
    batcher->next();
  }).startsWith("step 0 has no record that can be read. The first problem: record "));
}

TEST_CASE("Batcher: the error about an image that is smaller than the crop names image and crop") {
  Packed packed(20, 0);
  packed.config.augment.crop = 4;
  auto writer = RecordWriter::create(packed.scratch.path(TRAINING_FILE));
  auto bytes = kj::heapArray<kj::byte>(36);
  memset(bytes.begin(), 1, bytes.size());
  for (uint i = 0; i < 8; ++i) {
    ImageShape shape = i == 5 ? ImageShape{1, 3, 12} : SHAPE;
    writer->add(i, i, Encoding::RAW, shape, bytes);
  }
  writer->finish();
  auto dataset = packed.open();
  auto batcher = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  auto message = thrownBy([&]() { batcher->next(); });
  CHECK(message ==
        kj::str("data.augment.crop = 4 is larger than the image of record 5 (image 5 of the "
                "source, counted from 0) of ",
            dataset->training().path(),
            ", which has 12×3 pixels. Make the crop smaller, or the images larger with "
            "data.resize_short_side, or set data.on_bad_record = \"skip\""));
  CHECK(thrownBy([&]() { firstImages(*dataset, packed.config, 8); }) == message);
  CHECK(firstImages(*dataset, packed.config, 5).size() == 5 * 16);
}

}  // namespace io
