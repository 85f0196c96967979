#include "io/batches/stream.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include "io/testing/scratch.h"

namespace io {

namespace {

DataConfig configOf(uint batchSize, TrainingPart part = TrainingPart::SPLIT,
    RecordOrder order = RecordOrder::SHUFFLED) {
  auto config = testConfig("mnist");
  config.batchSize = batchSize;
  config.part = part;
  config.order = order;
  return config;
}

// Returns the first `count` samples of a worker's stream.
kj::Array<Stream::Sample> samplesOf(const DataConfig& config, uint64_t records, uint64_t seed,
    uint workers, uint rank, size_t count) {
  Stream stream(config, records, seed, workers, rank);
  auto result = kj::heapArray<Stream::Sample>(count);
  for (size_t i = 0; i < count; i += config.batchSize) {
    stream.samples(i / config.batchSize, result.slice(i, i + config.batchSize));
  }
  return result;
}

// Returns the first `count` samples of the stream as one worker of batch 1 reads them.
kj::Array<Stream::Sample> serial(uint64_t records, uint64_t seed, size_t count) {
  return samplesOf(configOf(1), records, seed, 1, 0, count);
}

}  // namespace

TEST_CASE("Stream: every pass holds every record once, in its own order") {
  auto all = serial(100, 7, 300);
  uint sameAsBefore = 0;
  for (uint pass = 0; pass < 3; ++pass) {
    bool seen[100] = {};
    for (uint i = 0; i < 100; ++i) {
      auto& sample = all[pass * 100 + i];
      CHECK(sample.pass == pass);
      CHECK(!seen[sample.record]);
      seen[sample.record] = true;
      if (pass > 0 && all[(pass - 1) * 100 + i].record == sample.record) ++sameAsBefore;
    }
  }
  CHECK(sameAsBefore < 20);
}

TEST_CASE("Stream: two workers read every one of a million records once per pass") {
  constexpr uint64_t RECORDS = Stream::LISTED_MAX + 1024, PASSES = 4;
  constexpr uint BATCH = 256, WORKERS = 2;
  static_assert(RECORDS % (BATCH * WORKERS) == 0);
  auto config = configOf(BATCH);
  auto seen = kj::heapArray<uint8_t>(RECORDS);
  for (auto& passes: seen) passes = 0;
  auto samples = kj::heapArray<Stream::Sample>(BATCH);
  uint64_t wrong = 0;
  for (uint rank = 0; rank < WORKERS; ++rank) {
    Stream stream(config, RECORDS, 3, WORKERS, rank);
    for (uint64_t step = 0; step < PASSES * RECORDS / (BATCH * WORKERS); ++step) {
      stream.samples(step, samples);
      for (auto& sample: samples) {
        uint8_t bit = 1 << sample.pass;
        bool isNew =
            sample.record < RECORDS && sample.pass < PASSES && (seen[sample.record] & bit) == 0;
        if (isNew) seen[sample.record] |= bit;
        if (!isNew) ++wrong;
      }
    }
  }
  CHECK(wrong == 0);
  for (auto& passes: seen) {
    if (passes != 0xf) ++wrong;
  }
  CHECK(wrong == 0);

  // A step in the middle is the same for a stream that begins there.
  Stream stream(config, RECORDS, 3, WORKERS, 1);
  auto others = kj::heapArray<Stream::Sample>(BATCH);
  for (uint64_t step: {0, 1, 4000, 4001, 1000}) {
    stream.samples(step, samples);
    Stream begun(config, RECORDS, 3, WORKERS, 1);
    begun.samples(step, others);
    CHECK(samples == others);
  }
}

TEST_CASE("Stream: the order depends on the seed alone") {
  auto one = serial(50, 1, 50);
  CHECK(one == serial(50, 1, 50));
  CHECK(one != serial(50, 2, 50));
}

TEST_CASE("Stream: W workers of batch b read what one worker of batch W·b reads") {
  for (uint workers: {1, 2, 3}) {
    // With 47 records, batches cross the ends of passes.
    auto all = serial(47, 3, 5 * 8 * workers);
    for (uint rank = 0; rank < workers; ++rank) {
      Stream stream(configOf(8), 47, 3, workers, rank);
      Stream::Sample batch[8];
      for (uint step = 0; step < 5; ++step) {
        stream.samples(step, batch);
        size_t from = (step * workers + rank) * 8;
        CHECK(kj::arrayPtr(batch, 8) == all.slice(from, from + 8));
      }
    }
  }
}

TEST_CASE(
    "Stream: a batch may be larger than the data set, and steps may be asked for in any order") {
  auto all = serial(5, 9, 64);
  Stream stream(configOf(16), 5, 9, 1, 0);
  Stream::Sample batch[16];
  for (uint step: {3, 0, 2}) {
    stream.samples(step, batch);
    CHECK(kj::arrayPtr(batch, 16) == all.slice(step * 16, step * 16 + 16));
  }
}

TEST_CASE("Stream: an epoch ends after floor(e·N / (W·b)) steps") {
  auto config = configOf(128);
  CHECK(Stream::stepsUntilEndOf(1, config, 50000, 2) == 195);
  CHECK(Stream::stepsUntilEndOf(2, config, 50000, 2) == 390);
  CHECK(Stream::stepsUntilEndOf(8, config, 50000, 2) == 1562);
}

TEST_CASE("Stream: an epoch ends after floor(e·N / b) steps if every worker reads all records") {
  for (auto part: {TrainingPart::WHOLE, TrainingPart::SAME}) {
    auto config = configOf(128, part);
    CHECK(Stream::stepsUntilEndOf(1, config, 50000, 2) == 390);
    CHECK(Stream::stepsUntilEndOf(2, config, 50000, 3) == 781);
  }
}

TEST_CASE("Stream: with \"same\" every worker reads what a single worker reads") {
  auto all = serial(47, 3, 96);
  for (uint rank = 0; rank < 3; ++rank) {
    CHECK(samplesOf(configOf(8, TrainingPart::SAME), 47, 3, 3, rank, 96) == all);
  }
}

TEST_CASE("Stream: with \"whole\" every worker reads all records, each in its own order") {
  auto config = configOf(5, TrainingPart::WHOLE);
  auto first = samplesOf(config, 50, 3, 3, 0, 100);
  CHECK(first == serial(50, 3, 100));
  for (uint rank = 1; rank < 3; ++rank) {
    auto samples = samplesOf(config, 50, 3, 3, rank, 100);
    for (uint pass = 0; pass < 2; ++pass) {
      bool seen[50] = {};
      uint same = 0;
      for (uint i = 50 * pass; i < 50 * (pass + 1); ++i) {
        CHECK(samples[i].pass == pass);
        CHECK(!seen[samples[i].record]);
        seen[samples[i].record] = true;
        same += samples[i].record == first[i].record;
      }
      CHECK(same < 10);
    }
    // The order depends on the rank, not on the number of workers.
    CHECK(samplesOf(config, 50, 3, 5, rank, 100) == samples);
  }
  CHECK(samplesOf(config, 50, 3, 3, 1, 100) != samplesOf(config, 50, 3, 3, 2, 100));
}

TEST_CASE("Stream: with a stored order every pass has the order of the records") {
  for (auto part: {TrainingPart::SPLIT, TrainingPart::WHOLE, TrainingPart::SAME}) {
    auto samples = samplesOf(configOf(5, part, RecordOrder::STORED), 25, 3, 1, 0, 75);
    for (uint i = 0; i < 75; ++i) CHECK(samples[i] == Stream::Sample{i % 25, i / 25});
  }
  // Worker 1 of 2 reads every second batch.
  auto second = samplesOf(configOf(5, TrainingPart::SPLIT, RecordOrder::STORED), 30, 3, 2, 1, 15);
  for (uint i = 0; i < 15; ++i) CHECK(second[i].record == i / 5 * 10 + 5 + i % 5);
}

TEST_CASE("Stream: W workers read chunks as one worker of batch W·b, every record once per pass") {
  for (auto part: {TrainingPart::SPLIT, TrainingPart::WHOLE}) {
    auto config = configOf(4, part, RecordOrder::CHUNKS);
    config.chunks = {.records = 8, .window = 3};
    constexpr uint RECORDS = 60, PASSES = 3, WORKERS = 3;
    uint64_t readings = config.readings(WORKERS);
    uint counts[PASSES][RECORDS] = {};
    auto single = configOf(4 * WORKERS, TrainingPart::SPLIT, RecordOrder::CHUNKS);
    single.chunks = config.chunks;
    auto all = samplesOf(single, RECORDS, 3, 1, 0, PASSES * RECORDS);
    for (uint rank = 0; rank < WORKERS; ++rank) {
      size_t each = PASSES * RECORDS * readings / WORKERS;
      auto samples = samplesOf(config, RECORDS, 3, WORKERS, rank, each);
      for (auto i: kj::indices(samples)) {
        REQUIRE((samples[i].record < RECORDS && samples[i].pass < PASSES));
        ++counts[samples[i].pass][samples[i].record];
        if (part == TrainingPart::SPLIT) {
          CHECK(samples[i] == all[(i / 4 * WORKERS + rank) * 4 + i % 4]);
        }
      }
    }
    bool isOnce = true;
    for (auto& pass: counts) {
      for (uint count: pass) isOnce = isOnce && count == readings;
    }
    CHECK(isOnce);
  }
}

TEST_CASE("Stream: \"discard\" leaves the last records of a pass out, \"pad\" repeats its first") {
  constexpr uint RECORDS = 47, WORKERS = 2, BATCH = 4, PASSES = 3;
  for (auto part: {TrainingPart::SPLIT, TrainingPart::WHOLE}) {
    auto config = configOf(BATCH, part);
    uint sharing = part == TrainingPart::SPLIT ? WORKERS : 1;
    for (auto lastBatch: {LastBatch::DISCARD, LastBatch::PAD}) {
      config.lastBatch = lastBatch;
      uint step = sharing * BATCH;
      uint length = (RECORDS / step + (lastBatch == LastBatch::PAD ? 1 : 0)) * step;
      CHECK(Stream::passLength(config, RECORDS, WORKERS) == length);
      CHECK(Stream::stepsUntilEndOf(2, config, length, WORKERS) == 2 * length / step);
      for (uint rank = 0; rank < WORKERS; ++rank) {
        // The order of a pass is the same as with "roll_over".
        auto rolled = configOf(1, part);
        auto all = samplesOf(rolled, RECORDS, 3, part == TrainingPart::SPLIT ? 1 : WORKERS,
            part == TrainingPart::SPLIT ? 0 : rank, PASSES * RECORDS);
        uint begin = part == TrainingPart::SPLIT ? rank * BATCH : 0;
        auto found = samplesOf(config, RECORDS, 3, WORKERS, rank, PASSES * length / sharing);
        for (uint i = 0; i < found.size(); ++i) {
          uint place = i / BATCH * step + begin + i % BATCH;
          uint pass = place / length, index = place % length % RECORDS;
          CHECK(found[i] == all[pass * RECORDS + index]);
        }
      }
    }
  }
}

TEST_CASE("Stream: held-out records are never read, and do not change the order of the others") {
  auto config = configOf(1);
  config.heldOut = 7;
  auto samples = samplesOf(config, 57, 3, 1, 0, 100);
  auto others = serial(50, 3, 100);
  for (uint i = 0; i < 100; ++i) {
    CHECK(samples[i] == Stream::Sample{others[i].record + 7, others[i].pass});
  }
}

}  // namespace io
