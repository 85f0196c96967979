#include "io/datasets/data_copy.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "io/datasets/datasets.h"
#include "io/paths.h"
#include "io/testing/image_folder.h"
#include "io/testing/scratch.h"
#include "tests/text.h"

namespace io {
namespace {

kj::Array<PackedFile> copyOf(kj::ArrayPtr<const PackedFile> files) {
  return KJ_MAP(file, files) {
    return PackedFile{kj::str(file.name), file.size_bytes};
  };
}

// A packed data set, and the cache of the machine that gets it.
struct Pair {
  ImageFolder scratch;
  kj::Own<PackedData> data;

  Pair() {
    auto packed = scratch.path("packed");
    packDataset(scratch.config, packed, unheard());
    scratch.config.source = kj::mv(packed);
    data = kj::heap<PackedData>(scratch.config);
  }

  kj::Own<DataCopy> newCopy() const {
    return kj::heap<DataCopy>(data->recordsSha256, data->name, copyOf(data->list()));
  }
  kj::Array<kj::byte> bytes(uint64_t begin, uint64_t end) const {
    auto result = kj::heapArray<kj::byte>(end - begin);
    data->read(begin, result);
    return result;
  }
};

TEST_CASE("DataCopy: continues where another process ended, and then holds the same records") {
  Pair pair;
  auto size = pair.data->size_bytes();
  CHECK(pair.data->list().size() == 3);  // with the mean image
  auto first = pair.newCopy();
  CHECK(first->find() == nullptr);
  REQUIRE(first->takeLock());
  first->open();
  CHECK(first->present_bytes() == 0);
  // Ends within the second file.
  auto cut = pair.data->list()[0].size_bytes + 1000;
  first->append(0, pair.bytes(0, 500));
  first->append(500, pair.bytes(500, cut));
  first = nullptr;

  auto second = pair.newCopy();
  REQUIRE(second->takeLock());
  second->open();
  CHECK(second->present_bytes() == cut);
  second->append(cut, pair.bytes(cut, size));
  auto read = kj::heapArray<kj::byte>(size);
  second->read(0, read);
  CHECK(read == pair.bytes(0, size));
  CHECK(second->find() == nullptr);
  second->finish();
  CHECK(second->find() != nullptr);

  auto there = testConfig("image_folder", kj::str("/nowhere"));
  there.copy = second->find();
  CHECK(recordsSha256(there) == pair.data->recordsSha256);
}

TEST_CASE("DataCopy: the import of another data set does not remove an unfinished copy") {
  Pair pair;
  auto cut = pair.newCopy();
  REQUIRE(cut->takeLock());
  cut->open();
  cut->append(0, pair.bytes(0, 500));
  cut = nullptr;
  pair.scratch.config.source = pair.scratch.path("images");
  auto imported = openDataset(pair.scratch.config, unheard());
  cut = pair.newCopy();
  REQUIRE(cut->takeLock());
  cut->open();
  CHECK(cut->present_bytes() == 500);
}

TEST_CASE("DataCopy: a machine that has imported the same records itself needs no copy") {
  ImageFolder scratch;
  auto folder = kj::str(openDataset(scratch.config, unheard())->folder());
  PackedData data(scratch.config);
  CHECK(folder.endsWith(kj::str("/", data.name)));
  auto found = [&](kj::StringPtr name) {
    return DataCopy(data.recordsSha256, name, copyOf(data.list())).find();
  };
  CHECK(KJ_ASSERT_NONNULL(found(data.name)) == folder);
  CHECK(found("another") == nullptr);
  CHECK(found("..") == nullptr);
  CHECK(::unlink(kj::str(folder, "/training.mdb").cStr()) == 0);
  CHECK(found(data.name) == nullptr);
}

TEST_CASE("DataCopy: only one process writes a copy") {
  Pair pair;
  auto first = pair.newCopy();
  auto second = pair.newCopy();
  REQUIRE(first->takeLock());
  CHECK_FALSE(second->takeLock());
  first = nullptr;
  CHECK(second->takeLock());
}

TEST_CASE(
    "DataCopy: refuses bytes that do not follow those that were copied, or go beyond the end") {
  Pair pair;
  auto copy = pair.newCopy();
  REQUIRE(copy->takeLock());
  copy->open();
  auto size = pair.data->size_bytes();
  CHECK(thrownBy([&]() { copy->append(1, pair.bytes(1, 2)); }) ==
        kj::str("1 bytes at 1 do not follow the 0 of ", size, " that are there"));
  auto more = kj::heapArray<kj::byte>(size + 1);
  CHECK(thrownBy([&]() { copy->append(0, more); }) != "");
  CHECK(copy->present_bytes() == 0);
}

TEST_CASE("DataCopy: find() does not return a copy that was cut short or has other records") {
  Pair pair;
  auto size = pair.data->size_bytes();
  auto write = [&](kj::ArrayPtr<const kj::byte> bytes) {
    auto copy = pair.newCopy();
    REQUIRE(copy->takeLock());
    copy->open();
    copy->clear();
    copy->append(0, bytes);
    copy->finish();
    return copy;
  };
  auto copy = write(pair.bytes(0, size));
  auto file = kj::str(KJ_ASSERT_NONNULL(copy->find()), "/training.mdb");
  REQUIRE(::truncate(file.cStr(), pair.data->list()[0].size_bytes - 1) == 0);
  CHECK(copy->find() == nullptr);
  copy = nullptr;
  CHECK(write(pair.bytes(0, size))->find() != nullptr);
  // The databases exist, but both are damaged.
  auto damaged = pair.bytes(0, size);
  for (auto& byte: damaged) byte ^= 1;
  CHECK(thrownBy([&]() { write(damaged); }).startsWith("the records that were copied to "));
  CHECK(pair.newCopy()->find() == nullptr);
}

TEST_CASE("DataCopy: refuses files that are not packed records, and a name that is not a SHA-256") {
  Pair pair;
  auto files = pair.data->list();
  auto refused = [&](auto&& change) {
    auto other = copyOf(files);
    change(other);
    return thrownBy([&]() { DataCopy(pair.data->recordsSha256, "x", kj::mv(other)); });
  };
  constexpr kj::StringPtr WHY = "the files of the copy are not those of packed records"_kj;
  CHECK(refused([](kj::Array<PackedFile>& f) { f[0].name = kj::str("../x"); }) == WHY);
  CHECK(refused([](kj::Array<PackedFile>& f) { f[1].size_bytes = ~uint64_t(0); }) == WHY);
  CHECK(refused([](kj::Array<PackedFile>& f) { f = nullptr; }) == WHY);
  CHECK(refused([](kj::Array<PackedFile>&) {}) == "");
  CHECK(thrownBy([&]() { DataCopy("../../x", "x", copyOf(files)); }) ==
        "the name of the copy of a data set is not a SHA-256");
}

}  // namespace
}  // namespace io
