#include "io/datasets/record_io.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include <cstring>

#include "io/testing/image_folder.h"
#include "io/testing/record_io_file.h"
#include "io/testing/scratch.h"
#include "tests/text.h"

namespace io {

namespace {

struct Found {
  kj::String name;
  uint32_t label;
  kj::Array<kj::byte> bytes;
};

kj::Array<Found> read(kj::StringPtr path) {
  kj::Vector<Found> all;
  auto members = Members::open(path);
  for (;;) {
    KJ_IF_MAYBE(name, members->next()) {
      auto bytes = members->read(1 << 20);
      all.add(Found{kj::str(*name), KJ_ASSERT_NONNULL(members->label()), kj::mv(bytes)});
    } else {
      CHECK(members->done() == members->total());
      return all.releaseAsArray();
    }
  }
}

kj::String refusal(const Scratch& scratch, kj::ArrayPtr<const kj::byte> file) {
  auto path = scratch.write("x.rec", file);
  return thrownBy([&]() { read(path); });
}

}  // namespace

TEST_CASE("RecordIO: returns the images with their labels") {
  Scratch scratch;
  auto jpeg = jpegOf(7);
  auto text = kj::heapArray<kj::byte>(kj::StringPtr("neither").asBytes());
  float label = 5;
  auto path = scratch.write(
      "x.rec", recordIoOf({{3, jpeg}, {1000000, text}, {0, jpeg, kj::arrayPtr(&label, 1)}}));
  CHECK(isRecordIo(path));
  auto all = read(path);
  REQUIRE(all.size() == 3);
  CHECK(all[0].name == "0.jpg");
  CHECK(all[1].name == "1.bin");
  CHECK(all[2].name == "2.jpg");
  CHECK(all[0].label == 3);
  CHECK(all[1].label == 1000000);
  CHECK(all[2].label == 5);
  CHECK(all[0].bytes == jpeg);
  CHECK(all[1].bytes == text);
  CHECK(all[2].bytes == jpeg);
}

TEST_CASE("RecordIO: joins the parts of a record that holds the magic number") {
  Scratch scratch;
  // At a multiple of 4 bytes, twice in a row, and at the end.
  constexpr kj::byte MAGIC[] = {0x0a, 0x23, 0xd7, 0xce};
  kj::Vector<kj::byte> bytes;
  for (auto count: {1, 2}) {
    for (int i = 0; i < 8; ++i) bytes.add(i);
    for (int i = 0; i < count; ++i) bytes.addAll(MAGIC, MAGIC + sizeof(MAGIC));
  }
  auto image = bytes.releaseAsArray();
  auto all = read(scratch.write("x.rec", recordIoOf({{1, image}, {2, image}})));
  REQUIRE(all.size() == 2);
  CHECK(all[0].bytes == image);
  CHECK(all[1].bytes == image);
  CHECK(all[1].label == 2);
}

TEST_CASE("RecordIO: refuses a file that is cut short anywhere but between two records") {
  Scratch scratch;
  auto jpeg = jpegOf(7);
  auto first = recordIoOf({{1, jpeg}});
  auto file = recordIoOf({{1, jpeg}, {2, jpeg}});
  for (size_t size = 4; size < file.size(); ++size) {
    if (size == first.size()) continue;
    INFO(size);
    CHECK(tests::contains(refusal(scratch, file.slice(0, size)),
        ", is cut short. The file may be incomplete: get it again"));
  }
}

TEST_CASE("RecordIO: names the record whose label or place is wrong") {
  Scratch scratch;
  auto jpeg = jpegOf(7);
  auto path = scratch.path("x.rec");
  float two[] = {1, 2};
  CHECK(refusal(scratch, recordIoOf({{1, jpeg}, {0, jpeg, two}})) ==
        kj::str(path, " has 2 labels for record 1. Only images with one label can be trained on"));
  for (float label: {-1.f, 0.5f, 1e9f, __builtin_nanf("")}) {
    CHECK(tests::contains(refusal(scratch, recordIoOf({{label, jpeg}})),
        " for record 0. A class is a whole number from 0 to 1000000"));
  }
  auto file = recordIoOf({{1, jpeg}, {2, jpeg}});
  auto second = recordIoOf({{1, jpeg}}).size();
  file[second] ^= 1;
  CHECK(refusal(scratch, file) ==
        kj::str("cannot read ", path, ": record 1, at byte ", second,
            ", does not begin as a record does. The file may be incomplete: get it again"));
  file[second] ^= 1;
  file[second + 7] |= 2 << 5;
  CHECK(tests::contains(refusal(scratch, file), ", has parts in wrong order. "));
}

}  // namespace io
