#include "io/images/record_check.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "io/images/jpeg.h"
#include "io/testing/scratch.h"
#include "tests/text.h"

namespace io {

namespace {

constexpr uint64_t COUNT = 200;
constexpr ImageShape SHAPE = {3, 8, 9};

// Labels are 0 and 2. Record 7 is a JPEG file, and record 9 claims to be one.
void writeRecords(kj::StringPtr path) {
  auto pixels = kj::heapArray<kj::byte>(SHAPE.size());
  for (auto& each: pixels) each = 100;
  auto jpeg = encodeJpeg({SHAPE, Layout::PLANES, pixels});
  auto writer = RecordWriter::create(path);
  for (uint64_t i = 0; i < COUNT; ++i) {
    uint32_t label = i % 4 == 0 ? 0 : 2;
    if (i == 7) {
      writer->add(label, i, Encoding::JPEG, SHAPE, jpeg);
    } else if (i == 9) {
      writer->add(label, i, Encoding::JPEG, SHAPE, pixels);
    } else {
      for (auto& each: pixels) each = i;
      writer->add(label, i, Encoding::RAW, SHAPE, pixels);
    }
  }
  writer->finish();
}

RecordSums check(kj::StringPtr path) {
  Progress silent = unheard();
  auto db = RecordDb::open(path);
  return checkRecords(*db, silent);
}

}  // namespace

TEST_CASE("checkRecords: counts records, and names images that cannot be decoded") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  writeRecords(path);
  auto sums = check(path);
  CHECK(sums.good == COUNT - 1);
  CHECK(sums.bad == 1);
  REQUIRE(sums.problems.size() == 1);
  CHECK(tests::contains(sums.problems[0], "record 9 "));
  CHECK(tests::contains(sums.problems[0], "is not a JPEG file"));
  CHECK(sums.hasItsDigest);
  CHECK(sums.jpegFiles == 1);
  CHECK(sums.sideMin == 8);
  CHECK(sums.sideMax == 8);
  CHECK(kj::strArray(sums.imagesOfClass, " ") == "50 0 149");
}

TEST_CASE("checkRecords: names damaged records, and reports that the digest no longer matches") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  writeRecords(path);
  int fd = ::open(path.cStr(), O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0);
  kj::AutoCloseFd file(fd);
  // The pixels of record 150 are 216 times its number.
  kj::byte pixels[SHAPE.channels * SHAPE.height * SHAPE.width];
  off_t at = 0;
  for (;; at += 2) {
    REQUIRE(::pread(fd, pixels, sizeof(pixels), at) == sizeof(pixels));
    bool isFound = true;
    for (auto each: pixels) isFound = isFound && each == 150;
    if (isFound) break;
  }
  kj::byte other = 151;
  REQUIRE(::pwrite(fd, &other, 1, at + 5) == 1);
  auto sums = check(path);
  CHECK(sums.good == COUNT - 2);
  REQUIRE(sums.problems.size() == 2);
  CHECK(tests::contains(sums.problems[0], "record 9 "));
  CHECK(tests::contains(sums.problems[1], "record 150 "));
  CHECK(tests::contains(sums.problems[1], "its checksum is wrong"));
  CHECK(!sums.hasItsDigest);
}

TEST_CASE("checkRecords: an empty database is good") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  RecordWriter::create(path)->finish();
  auto sums = check(path);
  CHECK(sums.good == 0);
  CHECK(sums.bad == 0);
  CHECK(sums.hasItsDigest);
}

}  // namespace io
