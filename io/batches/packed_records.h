// io/batches/packed_records.h: a small packed data set, for tests.
#pragma once

#include <kj/debug.h>
#include <kj/vector.h>

#include "io/batches/batcher.h"
#include "io/datasets/import.h"
#include "io/testing/scratch.h"

namespace io {

constexpr ImageShape SHAPE = {1, 6, 6};

// A packed data set: record i of training has label i, and pixels that encode record and position.
// Records in `bad` hold bytes that are not a JPEG file.
struct Packed {
  Scratch scratch;
  DataConfig config;

  explicit Packed(uint64_t training, uint64_t validation, kj::ArrayPtr<const uint> bad = nullptr)
      : config(testConfig("image_folder", kj::str(scratch.path("")))) {
    write(TRAINING_FILE, training, bad);
    write(VALIDATION_FILE, validation, bad);
    config.batchSize = 8;
    config.augment.crop = 4;
    config.augment.mirror = Mirror::RANDOM;
  }

  void write(kj::StringPtr name, uint64_t count, kj::ArrayPtr<const uint> bad) {
    auto writer = RecordWriter::create(scratch.path(name));
    for (uint64_t i = 0; i < count; ++i) {
      auto pixels = kj::heapArray<kj::byte>(SHAPE.size());
      for (auto p: kj::indices(pixels)) pixels[p] = i * 36 + p;
      bool isBad = false;
      for (auto b: bad) isBad = isBad || b == i;
      if (isBad) {
        writer->add(i, i, Encoding::JPEG, SHAPE, kj::StringPtr("none").asBytes());
      } else {
        writer->add(i, i, Encoding::RAW, SHAPE, pixels);
      }
    }
    writer->finish();
  }

  kj::Own<Dataset> open() const { return openDataset(config, unheard()); }
};

// Returns all bytes of the next `steps` batches: labels and pixels.
inline kj::Array<kj::byte> bytesOf(Batcher& batcher, uint steps) {
  kj::Vector<kj::byte> all;
  for (uint i = 0; i < steps; ++i) {
    auto& batch = KJ_ASSERT_NONNULL(batcher.next());
    all.addAll(batch.labels.asBytes());
    all.addAll(batch.pixels.asBytes());
  }
  return all.releaseAsArray();
}

}  // namespace io
