#include "io/images/pixels.h"

#include <doctest/doctest.h>

#include "io/testing/scratch.h"

namespace io {

namespace {

constexpr ImageShape SHAPE = {3, 8, 8};

kj::Array<kj::byte> flat(kj::byte value) {
  auto result = kj::heapArray<kj::byte>(SHAPE.size());
  for (auto& pixel: result) pixel = value;
  return result;
}

}  // namespace

TEST_CASE("meanImageOf: raw and JPEG records have the same weight") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  auto writer = RecordWriter::create(path);
  writer->add(0, 0, Encoding::RAW, SHAPE, flat(10));
  writer->add(0, 1, Encoding::RAW, SHAPE, flat(11));
  auto grey = flat(50);
  writer->add(0, 2, Encoding::JPEG, SHAPE, encodeJpeg({SHAPE, Layout::PLANES, grey}));
  writer->finish();
  auto progress = unheard();
  auto mean = meanImageOf(*RecordDb::open(path), BadRecordPolicy::FAIL, progress);
  REQUIRE(mean.size() == SHAPE.size());
  for (float value: mean) CHECK(value == float(71.0 / 3));
}

TEST_CASE("meanImageOf: refuses or leaves out a bad record, by policy") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  auto writer = RecordWriter::create(path);
  writer->add(0, 0, Encoding::RAW, SHAPE, flat(10));
  writer->add(0, 7, Encoding::JPEG, SHAPE, kj::StringPtr("no JPEG file").asBytes());
  writer->finish();
  auto db = RecordDb::open(path);
  auto progress = unheard();
  CHECK(meanImageOf(*db, BadRecordPolicy::SKIP, progress)[0] == 10);
  auto message = thrownBy([&]() { meanImageOf(*db, BadRecordPolicy::FAIL, progress); });
  CHECK(message == kj::str("record 1 (image 7 of the source, counted from 0) of ", path,
                       " is bad: its image is not a JPEG file. Repair or remove that image in the "
                       "source of the data, or set data.on_bad_record = \"skip\""));
}

TEST_CASE("meanImageOf: refuses images of several shapes") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  auto writer = RecordWriter::create(path);
  auto bytes = flat(0);
  writer->add(0, 0, Encoding::RAW, SHAPE, bytes);
  writer->add(0, 1, Encoding::RAW, {3, 4, 16}, bytes);
  writer->finish();
  auto progress = unheard();
  CHECK_THROWS(meanImageOf(*RecordDb::open(path), BadRecordPolicy::FAIL, progress));
}

}  // namespace io
