#include "io/batches/batcher.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/time.h>
#include <kj/vector.h>
#include <pthread.h>

#include <cmath>
#include <cstring>
#include <initializer_list>

#include "io/batches/first_images.h"
#include "io/batches/packed_records.h"
#include "io/images/jpeg.h"

namespace io {

namespace {

// Returns labels and pixels of each image of the next `steps` batches.
kj::Array<kj::Array<kj::byte>> imagesOf(Batcher& batcher, uint steps) {
  kj::Vector<kj::Array<kj::byte>> all;
  for (uint i = 0; i < steps; ++i) {
    auto& batch = KJ_ASSERT_NONNULL(batcher.next());
    size_t size = batch.pixels.size() / batch.labels.size();
    for (auto row: kj::indices(batch.labels)) {
      kj::Vector<kj::byte> image;
      image.addAll(batch.labels.slice(row, row + 1).asBytes());
      image.addAll(batch.pixels.slice(row * size, (row + 1) * size).asBytes());
      all.add(image.releaseAsArray());
    }
  }
  return all.releaseAsArray();
}

// No thread can be started while this object exists.
class NoThreads {
public:
  NoThreads() {
    KJ_REQUIRE(::pthread_getattr_default_np(&before) == 0);
    auto more = before;
    // More than the address space.
    KJ_REQUIRE(::pthread_attr_setstacksize(&more, size_t(1) << 50) == 0);
    KJ_REQUIRE(::pthread_setattr_default_np(&more) == 0);
  }
  ~NoThreads() { ::pthread_setattr_default_np(&before); }
  KJ_DISALLOW_COPY(NoThreads);

private:
  pthread_attr_t before;
};

}  // namespace

TEST_CASE("Batcher: a batch does not depend on the number of reader threads") {
  Packed packed(50, 0);
  auto dataset = packed.open();
  kj::Vector<kj::Array<kj::byte>> runs;
  for (uint threads: {0, 1, 4, 16}) {
    packed.config.readerThreads = threads;
    auto batcher = Batcher::training(*dataset, packed.config, 5, 2, 1, 0);
    runs.add(bytesOf(*batcher, 40));
  }
  for (auto& run: runs) CHECK(run == runs[0]);
}

// KJ does not free a thread's state if the thread cannot be started.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:kj::Thread::Thread";
}

TEST_CASE("Batcher: keeps working with the threads that it has if it cannot start another one") {
  Packed packed(50, 0);
  auto dataset = packed.open();
  packed.config.readerThreads = 1;
  packed.config.addsReaders = true;
  auto batcher = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  NoThreads none;
  // Steps that compute nothing wait for records. After a second, the batcher tries to add a thread.
  auto& clock = kj::systemPreciseMonotonicClock();
  for (auto end = clock.now() + 1500 * kj::MILLISECONDS; clock.now() < end;) batcher->next();
  CHECK(batcher->counts().threads == 1);

  CHECK_THROWS_WITH(Batcher::training(*dataset, packed.config, 5, 1, 0, 0),
      doctest::Contains("cannot start a thread that reads records: the machine has no memory"));
  packed.config.readerThreads = 0;
  packed.config.addsReaders = false;
  CHECK(Batcher::training(*dataset, packed.config, 5, 1, 0, 0)->next() != nullptr);
}

TEST_CASE("Batcher: two workers of batch b read what one worker of batch 2b reads") {
  Packed packed(50, 0);
  auto dataset = packed.open();
  auto first = Batcher::training(*dataset, packed.config, 5, 2, 0, 0);
  auto second = Batcher::training(*dataset, packed.config, 5, 2, 1, 0);
  packed.config.batchSize = 16;
  auto both = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  for (uint step = 0; step < 20; ++step) {
    auto a = imagesOf(*first, 1);
    auto b = imagesOf(*second, 1);
    auto all = imagesOf(*both, 1);
    for (uint i = 0; i < 8; ++i) {
      CHECK(a[i] == all[i]);
      CHECK(b[i] == all[8 + i]);
    }
  }
}

TEST_CASE(
    "Batcher: started at a later step, gives the same batches as if it had read the earlier ones") {
  Packed packed(50, 0);
  auto dataset = packed.open();
  auto batcher = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  auto later = Batcher::training(*dataset, packed.config, 5, 1, 0, 7);
  bytesOf(*batcher, 7);
  CHECK(KJ_ASSERT_NONNULL(later->next()).step == 7);
  CHECK(KJ_ASSERT_NONNULL(batcher->next()).step == 7);
  CHECK(bytesOf(*batcher, 10) == bytesOf(*later, 10));
}

TEST_CASE("Batcher: an epoch has every record once, cropped at random positions") {
  Packed packed(48, 0);
  packed.config.augment.mirror = Mirror::NEVER;
  auto dataset = packed.open();
  auto batcher = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  bool seen[48] = {};
  bool moved = false;
  for (uint step = 0; step < 6; ++step) {
    auto& batch = KJ_ASSERT_NONNULL(batcher->next());
    CHECK(batch.images == 8);
    CHECK(batch.pixels.size() == 8 * 16);
    for (uint i = 0; i < 8; ++i) {
      uint record = batch.labels[i];
      REQUIRE(record < 48);
      CHECK(!seen[record]);
      seen[record] = true;
      // The crop's first pixel encodes its position, and the others follow from it.
      uint place = (uint(batch.pixels[i * 16]) - record * 36) % 256;
      moved = moved || place != 0;
      CHECK((place / 6 <= 2 && place % 6 <= 2));
      CHECK(uint(batch.pixels[i * 16 + 6]) == (record * 36 + place + 6 + 2) % 256);
    }
  }
  CHECK(moved);
}

TEST_CASE(
    "Batcher: validation gives all records once, in order, cropped at the centre, and again after "
    "restart()") {
  Packed packed(8, 43);
  auto dataset = packed.open();
  for (uint workers: {1, 2, 3}) {
    packed.config.readerThreads = workers - 1;
    kj::Vector<int32_t> labels;
    for (uint rank = 0; rank < workers; ++rank) {
      auto batcher = Batcher::validation(*dataset, packed.config, workers, rank);
      kj::Vector<int32_t> first, second;
      for (auto round: {&first, &second}) {
        for (;;) {
          KJ_IF_MAYBE(batch, batcher->next()) {
            for (uint i = 0; i < batch->images; ++i) {
              round->add(batch->labels[i]);
              CHECK(uint(batch->pixels[i * 16]) == (batch->labels[i] * 36u + 7) % 256);
            }
            for (uint i = batch->images; i < 8; ++i) {
              CHECK(batch->labels[i] == -1);
              CHECK(batch->pixels[i * 16] == 0);
            }
          } else {
            break;
          }
        }
        CHECK(batcher->next() == nullptr);
        batcher->restart(CENTRE_VIEW);
      }
      CHECK(first.asPtr() == second.asPtr());
      CHECK(first.size() == (rank + 1) * 43 / workers - rank * 43 / workers);
      labels.addAll(first);
    }
    REQUIRE(labels.size() == 43);
    for (int32_t i = 0; i < 43; ++i) CHECK(labels[i] == i);
  }
}

TEST_CASE("Batcher: gives each batch of validation once per view") {
  Packed packed(8, 19);
  auto dataset = packed.open();
  packed.config.validationViews = row(VALIDATION_VIEWS, "mirror_shift")->value;
  packed.config.viewsAt = ViewsAt::LAST;
  auto batcher = Batcher::validation(*dataset, packed.config, 1, 0);
  for (bool isLast: {false, true, false}) {
    auto views = packed.config.views(isLast);
    batcher->restart(views);
    for (uint step = 0; step < 3; ++step) {
      for (auto& view: views) {
        auto& batch = KJ_ASSERT_NONNULL(batcher->next());
        CHECK(batch.step == step);
        CHECK(batch.images == (step < 2 ? 8 : 3));
        CHECK(batch.views == views.size());
        CHECK(batch.weight == view.weight);
        CHECK(batch.isLastView == (&view == &views.back()));
        for (uint i = 0; i < batch.images; ++i) {
          CHECK(batch.labels[i] == int32_t(step * 8 + i));
          // The crop of 4 from the centre of 6, moved. Compares its first pixel, or the last one of
          // its first row.
          uint place = (1 + view.down) * 6 + 1 + view.right + (view.mirror ? 3 : 0);
          CHECK(uint(batch.pixels[i * 16]) == (batch.labels[i] * 36u + place) % 256);
        }
      }
    }
    CHECK(batcher->next() == nullptr);
  }
}

TEST_CASE("Batcher: validates on held-out records as on validation images, split or whole") {
  Packed packed(50, 3);
  packed.config.heldOut = 11;
  auto dataset = packed.open();
  auto training = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  for (uint step = 0; step < 20; ++step) {
    for (auto label: KJ_ASSERT_NONNULL(training->next()).labels) CHECK(label >= 11);
  }
  // The default is the data set's own validation records.
  auto own = Batcher::validation(*dataset, packed.config, 1, 0);
  CHECK(KJ_ASSERT_NONNULL(own->next()).images == 3);

  packed.config.validateOn = ValidationSet::HELD_OUT;
  auto labelsOf = [&](uint workers, uint rank) {
    auto batcher = Batcher::validation(*dataset, packed.config, workers, rank);
    kj::Vector<int32_t> labels;
    for (;;) {
      KJ_IF_MAYBE(batch, batcher->next()) {
        for (uint i = 0; i < batch->images; ++i) {
          labels.add(batch->labels[i]);
          // Cropped at the centre, and not mirrored.
          CHECK(uint(batch->pixels[i * 16]) == (batch->labels[i] * 36u + 7) % 256);
          CHECK(uint(batch->pixels[i * 16 + 1]) == (batch->labels[i] * 36u + 8) % 256);
        }
      } else {
        return labels;
      }
    }
  };
  kj::Vector<int32_t> all;
  for (uint rank = 0; rank < 2; ++rank) all.addAll(labelsOf(2, rank));
  REQUIRE(all.size() == 11);
  for (int32_t i = 0; i < 11; ++i) CHECK(all[i] == i);
  packed.config.validation = ValidationPart::WHOLE;
  CHECK(labelsOf(2, 1).asPtr() == all.asPtr());
}

TEST_CASE("Batcher: a row's draw is a function of (seed, pass, record)") {
  Packed packed(16, 5);
  auto dataset = packed.open();
  uint64_t drawn[2][2][16];  // of each run, pass and record
  for (uint run = 0; run < 2; ++run) {
    packed.config.batchSize = 8 >> run;
    packed.config.readerThreads = 3 * run;
    auto batcher = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
    for (uint i = 0; i < 32;) {
      auto& batch = KJ_ASSERT_NONNULL(batcher->next());
      for (auto n: kj::indices(batch.labels)) {
        drawn[run][i++ / 16][batch.labels[n]] = batch.draws[n];
      }
    }
  }
  for (uint record = 0; record < 16; ++record) {
    CHECK(drawn[0][0][record] == drawn[1][0][record]);
    CHECK(drawn[0][1][record] == drawn[1][1][record]);
    CHECK(drawn[0][0][record] != drawn[0][1][record]);
    if (record > 0) CHECK(drawn[0][0][record] != drawn[0][0][record - 1]);
  }
  packed.config.batchSize = 8;
  auto other = Batcher::training(*dataset, packed.config, 6, 1, 0, 0);
  auto& batch = KJ_ASSERT_NONNULL(other->next());
  CHECK(batch.draws[0] != drawn[0][0][batch.labels[0]]);
  auto validation = Batcher::validation(*dataset, packed.config, 1, 0);
  for (auto draw: KJ_ASSERT_NONNULL(validation->next()).draws) CHECK(draw == 0);
}

TEST_CASE("Batcher: restart() in the middle of validation begins with the first batch") {
  Packed packed(8, 43);
  auto dataset = packed.open();
  auto batcher = Batcher::validation(*dataset, packed.config, 1, 0);
  auto first = bytesOf(*batcher, 2);
  batcher->restart(CENTRE_VIEW);
  CHECK(bytesOf(*batcher, 2) == first);
}

TEST_CASE("Batcher: continues with another division of the records, and reads no batch twice") {
  Packed packed(120, 0);
  SUBCASE("with reader threads") {
    packed.config.readerThreads = 2;
  }
  SUBCASE("without reader threads") {
    packed.config.readerThreads = 0;
  }
  auto dataset = packed.open();
  MemberChange joins{.rank = 1, .joins = true, .step = 3};
  auto divided = [&](uint rank, uint64_t step) {
    auto batcher = Batcher::training(*dataset, packed.config, 5, 2, rank, step);
    batcher->divideBy(
        kj::heap<Division>(120, packed.config.batchSize, 1, kj::arrayPtr(&joins, 1)), step);
    return batcher;
  };
  // Worker 0 reads the first three batches alone, and from step 3 on every second batch.
  auto alone = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  auto wanted = bytesOf(*alone, 7);
  size_t batch = wanted.size() / 7;
  auto batches = [&](std::initializer_list<uint> numbers) {
    kj::Vector<kj::byte> all;
    for (uint n: numbers) all.addAll(wanted.slice(n * batch, (n + 1) * batch));
    return all.releaseAsArray();
  };
  auto first = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  CHECK(bytesOf(*first, 2) == batches({0, 1}));
  first->divideBy(kj::heap<Division>(120, packed.config.batchSize, 1, kj::arrayPtr(&joins, 1)), 2);
  CHECK(bytesOf(*first, 3) == batches({2, 3, 5}));
  CHECK(bytesOf(*divided(1, 3), 2) == batches({4, 6}));
}

TEST_CASE("Batcher: validates on another part of the records when the members have changed") {
  Packed packed(8, 40);
  auto dataset = packed.open();
  auto labels = [&](Batcher& batcher) {
    kj::Vector<int32_t> all;
    for (;;) {
      KJ_IF_MAYBE(batch, batcher.next()) {
        all.addAll(batch->labels.slice(0, batch->images));
      } else {
        return all.releaseAsArray();
      }
    }
  };
  auto batcher = Batcher::validation(*dataset, packed.config, 3, 2);
  CHECK(labels(*batcher).size() == 14);
  batcher->take(1, 2);
  auto second = labels(*batcher);
  CHECK(second.size() == 20);
  CHECK(second[0] == 20);
}

TEST_CASE("Batcher: \"whole\" validation gives every worker all records, and a part may be empty") {
  Packed packed(8, 5);
  auto dataset = packed.open();
  packed.config.validation = ValidationPart::WHOLE;
  auto whole = Batcher::validation(*dataset, packed.config, 3, 2);
  CHECK(KJ_ASSERT_NONNULL(whole->next()).images == 5);
  packed.config.validation = ValidationPart::SPLIT;
  auto part = Batcher::validation(*dataset, packed.config, 100, 1);
  CHECK(part->next() == nullptr);
}

TEST_CASE(
    "Batcher: bytes with their draws give the same pixels as the form PIXELS, also with bad "
    "records") {
  const uint bad[] = {3, 21, 22, 40};
  Packed packed(48, 11, bad);
  packed.config.onBadRecord = BadRecordPolicy::SKIP;
  auto dataset = packed.open();
  auto augmenter = augmenterOf(*dataset, packed.config);
  size_t given = 0;
  auto bytes = [&]() {
    kj::Function<kj::Array<kj::byte>(size_t)> allocate = [&](size_t size) {
      given += size;
      return kj::heapArray<kj::byte>(size);
    };
    return BatchForm{.word = BatchForm::BYTES, .allocate = kj::mv(allocate)};
  };
  auto check = [&](kj::Own<Batcher> pixels, kj::Own<Batcher> raw, uint steps) {
    for (uint step = 0; step < steps; ++step) {
      auto& expected = KJ_ASSERT_NONNULL(pixels->next());
      auto& found = KJ_ASSERT_NONNULL(raw->next());
      CHECK(found.pixels.size() == 0);
      CHECK(found.labels == expected.labels);
      CHECK(found.draws == expected.draws);
      CHECK(found.images == expected.images);
      for (uint i = 0; i < found.images; ++i) {
        CHECK(found.records[i] == uint64_t(found.labels[i]));
        float out[16];
        augmenter.apply({SHAPE, Layout::PLANES, found.bytes.slice(i * 36, i * 36 + 36)},
            found.augmentations[i], out);
        CHECK(kj::arrayPtr(out, 16) == expected.pixels.slice(i * 16, i * 16 + 16));
      }
    }
    CHECK(raw->counts().badRecords == pixels->counts().badRecords);
  };
  check(Batcher::training(*dataset, packed.config, 5, 1, 0, 0),
      Batcher::training(*dataset, packed.config, 5, 1, 0, 0, bytes()), 12);
  CHECK(given == (packed.config.readerThreads + 2) * 8 * SHAPE.size());
  check(Batcher::validation(*dataset, packed.config, 1, 0),
      Batcher::validation(*dataset, packed.config, 1, 0, bytes()), 2);
}

TEST_CASE(
    "Batcher: the form NUMBERS has the same records as PIXELS, with the labels that were given") {
  Packed packed(48, 0);
  auto dataset = packed.open();
  int32_t labels[48];
  for (int32_t i = 0; i < 48; ++i) labels[i] = 100 - i;
  auto pixels = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  auto numbers = Batcher::training(
      *dataset, packed.config, 5, 1, 0, 0, {.word = BatchForm::NUMBERS, .labels = labels});
  for (uint step = 0; step < 12; ++step) {
    auto& expected = KJ_ASSERT_NONNULL(pixels->next());
    auto& found = KJ_ASSERT_NONNULL(numbers->next());
    CHECK((found.pixels.size() == 0 && found.bytes.size() == 0));
    for (uint i = 0; i < 8; ++i) {
      CHECK(found.records[i] == uint64_t(expected.labels[i]));
      CHECK(found.labels[i] == 100 - expected.labels[i]);
    }
  }
}

TEST_CASE("Batcher: resized crops may be larger than the images, and BYTES has them rounded") {
  Packed packed(48, 0);
  auto& augment = packed.config.augment;
  augment.crop = 9;
  augment.areaMin = 0.3;
  augment.areaMax = 1;
  augment.aspectMin = 0.5;
  augment.aspectMax = 2;
  augment.centreCrop = 0.875;
  auto dataset = packed.open();
  CHECK(dataset->batchShape() == ImageShape{1, 9, 9});
  CHECK(augmenterOf(*dataset, packed.config).stored == dataset->batchShape());
  auto pixels = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
  kj::Function<kj::Array<kj::byte>(size_t)> allocate = [](size_t bytes) {
    return kj::heapArray<kj::byte>(bytes);
  };
  BatchForm form{.word = BatchForm::BYTES, .allocate = kj::mv(allocate)};
  auto bytes = Batcher::training(*dataset, packed.config, 5, 1, 0, 0, kj::mv(form));
  for (uint step = 0; step < 12; ++step) {
    auto& expected = KJ_ASSERT_NONNULL(pixels->next());
    auto& found = KJ_ASSERT_NONNULL(bytes->next());
    REQUIRE(found.bytes.size() == 8 * 81);
    for (uint i = 0; i < 8; ++i) {
      auto& drawn = found.augmentations[i];
      CHECK(drawn == Augmentation{0, 0, drawn.mirror});
      for (uint at = 0; at < 81; ++at) {
        uint column = at % 9, from = drawn.mirror ? at - column + 8 - column : at;
        double difference = expected.pixels[i * 81 + at] - found.bytes[i * 81 + from];
        CHECK(std::abs(difference) <= 0.5);
      }
    }
  }
}

TEST_CASE("Batcher: throws for a worker that is not a member, instead of waiting") {
  Packed packed(120, 0);
  SUBCASE("with reader threads") {
    packed.config.readerThreads = 2;
  }
  SUBCASE("without reader threads") {
    packed.config.readerThreads = 0;
  }
  auto dataset = packed.open();
  auto batcher = Batcher::training(*dataset, packed.config, 5, 2, 1, 0);
  batcher->divideBy(kj::heap<Division>(120, packed.config.batchSize, 1), 0);
  auto message = thrownBy([&]() { batcher->next(); });
  CHECK(strstr(message.cStr(), "a worker that is no member of the job reads records") != nullptr);
}

TEST_CASE("Batcher: can be destroyed at any time, whether full, untouched or half read") {
  Packed packed(50, 50);
  auto dataset = packed.open();
  packed.config.readerThreads = 8;
  for (uint steps = 0; steps < 20; ++steps) {
    auto training = Batcher::training(*dataset, packed.config, 5, 1, 0, 0);
    auto validation = Batcher::validation(*dataset, packed.config, 1, 0);
    bytesOf(*training, steps);
  }
}

}  // namespace io
