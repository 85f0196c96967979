#include "io/records/record_db.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/filesystem.h>
#include <kj/io.h>
#include <kj/thread.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <utility>

#include "io/records/record_format.h"
#include "io/testing/scratch.h"

namespace io {

namespace {

constexpr ImageShape SHAPE = {3, 4, 5};

kj::Array<kj::byte> pixels(uint64_t id) {
  auto result = kj::heapArray<kj::byte>(SHAPE.size());
  for (auto i: kj::indices(result)) result[i] = i * 7 + id;
  return result;
}

constexpr kj::StringPtr WAY_OUT =
    ". Delete this file only if it lies in the cache of records: then the next run imports the "
    "data again. If pack_records wrote it, pack again"_kj;

void writeRecords(kj::StringPtr path, uint64_t count, kj::StringPtr dataset = nullptr) {
  auto writer = RecordWriter::create(path);
  for (uint64_t i = 0; i < count; ++i) writer->add(i % 10, i, Encoding::RAW, SHAPE, pixels(i));
  writer->finish({dataset});
}

kj::Array<kj::byte> fileOf(kj::StringPtr path) {
  auto filesystem = kj::newDiskFilesystem();
  return filesystem->getRoot().openFile(kj::Path(nullptr).evalNative(path))->readAllBytes();
}

}  // namespace

TEST_CASE("RecordDb: reads every record as it was written, in any order") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  writeRecords(path, 300);
  auto db = RecordDb::open(path);
  CHECK(db->count() == 300);
  CHECK(db->classes() == 10);
  CHECK(KJ_ASSERT_NONNULL(db->shape()) == SHAPE);
  CHECK(db->path() == path);
  auto reader = RecordReader::open(*db);
  for (uint64_t i = 0; i < 300; ++i) {
    uint64_t index = i * 77 % 300;
    auto record = reader->read(index);
    CHECK(record.id == index);
    CHECK(record.label == index % 10);
    CHECK(record.encoding == Encoding::RAW);
    CHECK(record.shape == SHAPE);
    CHECK(record.bytes == pixels(index).asPtr());
  }
}

TEST_CASE(
    "RecordDb: knows the data set's name if it was written, and the digest ignores the name") {
  Scratch scratch;
  auto named = scratch.path("named.mdb"), unnamed = scratch.path("unnamed.mdb");
  writeRecords(named, 20, "mnist");
  writeRecords(unnamed, 20);
  auto db = RecordDb::open(named);
  CHECK(KJ_ASSERT_NONNULL(db->dataset()) == "mnist");
  auto older = RecordDb::open(unnamed);
  CHECK(older->dataset() == nullptr);
  CHECK(db->digest() == older->digest());
  CHECK(RecordReader::open(*db)->read(19).id == 19);
}

TEST_CASE("RecordDb: shape() is null if images have different shapes") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  auto writer = RecordWriter::create(path);
  auto bytes = kj::heapArray<kj::byte>(12);
  memset(bytes.begin(), 1, 12);
  writer->add(0, 0, Encoding::RAW, {1, 3, 4}, bytes);
  writer->add(1, 1, Encoding::RAW, {1, 4, 3}, bytes);
  writer->add(1, 2, Encoding::RAW, {1, 3, 4}, bytes);
  writer->finish();
  CHECK(RecordDb::open(path)->shape() == nullptr);
}

TEST_CASE("RecordDb: databases with the same records have the same digest, and others do not") {
  Scratch scratch;
  writeRecords(scratch.path("a.mdb"), 20);
  writeRecords(scratch.path("b.mdb"), 20);
  writeRecords(scratch.path("c.mdb"), 21);
  auto a = RecordDb::open(scratch.path("a.mdb"));
  CHECK(a->digest() == RecordDb::open(scratch.path("b.mdb"))->digest());
  CHECK(a->digest() != RecordDb::open(scratch.path("c.mdb"))->digest());
}

TEST_CASE("RecordDb: one process opens a database twice, and reads it from several threads") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  writeRecords(path, 100);
  auto first = RecordDb::open(path);
  auto firstReader = RecordReader::open(*first);
  {
    auto second = RecordDb::open(path);
    kj::Thread thread([&]() {
      auto reader = RecordReader::open(*second);
      for (uint64_t i = 0; i < 100; ++i) KJ_ASSERT(reader->read(i).id == i);
    });
    for (uint64_t i = 0; i < 100; ++i) CHECK(firstReader->read(i).id == i);
  }
  // Closing the second database has not disturbed the first.
  CHECK(firstReader->read(5).id == 5);
  CHECK(RecordReader::open(*first)->read(6).id == 6);
}

TEST_CASE("RecordDb: opens a database in a read-only folder, and leaves no lock file") {
  Scratch scratch;
  scratch.write("folder/x", nullptr);
  auto path = scratch.path("folder/records.mdb");
  writeRecords(path, 3);
  auto folder = scratch.path("folder");
  REQUIRE(::chmod(path.cStr(), 0444) == 0);
  REQUIRE(::chmod(folder.cStr(), 0555) == 0);
  KJ_DEFER(::chmod(folder.cStr(), 0755));
  CHECK(RecordReader::open(*RecordDb::open(path))->read(2).id == 2);
  CHECK(::access(kj::str(path, "-lock").cStr(), F_OK) != 0);
}

TEST_CASE("RecordWriter: the path is empty before finish(), and nothing is left without it") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  {
    auto writer = RecordWriter::create(path);
    writer->add(0, 0, Encoding::RAW, SHAPE, pixels(0));
    CHECK(::access(path.cStr(), F_OK) != 0);
  }
  auto filesystem = kj::newDiskFilesystem();
  auto folder = filesystem->getRoot().openSubdir(kj::Path(nullptr).evalNative(scratch.path(".")));
  CHECK(folder->listNames().size() == 0);
}

TEST_CASE("RecordWriter: writes more than one commit, and lets the map grow") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  auto bytes = kj::heapArray<kj::byte>(size_t(3) << 20);
  memset(bytes.begin(), 9, bytes.size());
  {
    auto writer = RecordWriter::create(path);
    for (uint64_t i = 0; i < 50; ++i) {
      bytes[0] = i;
      writer->add(0, i, Encoding::RAW, {3, 1024, 1024}, bytes);
    }
    writer->finish();
  }
  auto db = RecordDb::open(path);
  auto reader = RecordReader::open(*db);
  for (uint64_t i = 0; i < 50; ++i) CHECK(reader->read(i).bytes[0] == i);
}

TEST_CASE("RecordDb: refuses an incomplete database with its path and the cause") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  CHECK(thrownBy([&]() { RecordDb::open(path); }) ==
        kj::str("cannot open the record database ", path, ": No such file or directory"));
  kj::StringPtr wayOut = WAY_OUT;

  auto empty = scratch.write("empty.mdb", nullptr);
  CHECK(thrownBy([&]() { RecordDb::open(empty); }) ==
        kj::str("cannot open the record database ", empty, ": the file is empty", wayOut));

  auto noise = kj::heapArray<kj::byte>(100000);
  for (auto i: kj::indices(noise)) noise[i] = i * 31;
  auto other = scratch.write("noise.mdb", noise);
  CHECK(thrownBy([&]() { RecordDb::open(other); }) ==
        kj::str("cannot open the record database ", other,
            ": it is not an LMDB file. If it is a file of your own, name a database or a folder of "
            "packed "
            "records instead. Otherwise it is damaged",
            wayOut));

  writeRecords(path, 5000);
  auto whole = fileOf(path);
  auto half = scratch.write("half.mdb", whole.slice(0, whole.size() / 2));
  CHECK(thrownBy([&]() { RecordDb::open(half); }) ==
        kj::str("cannot open the record database ", half, ": the file is cut short", wayOut));
}

TEST_CASE("RecordDb: refuses a database that is cut short at any page, or inside of one") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  writeRecords(path, 300);
  auto whole = fileOf(path);
  auto cut = scratch.write("cut.mdb", whole);
  constexpr size_t PAGE_BYTES = 4096;
  REQUIRE(whole.size() > 10 * PAGE_BYTES);
  for (size_t bytes = whole.size(); bytes > 0; bytes -= kj::min(bytes, PAGE_BYTES)) {
    for (size_t more: {size_t(0), size_t(1), PAGE_BYTES / 2, PAGE_BYTES - 1}) {
      size_t size = bytes - kj::min(bytes, PAGE_BYTES) + more;
      INFO(size);
      REQUIRE(::truncate(cut.cStr(), 0) == 0);
      scratch.write("cut.mdb", whole.slice(0, size));
      auto why = thrownBy([&]() {
        auto db = RecordDb::open(cut);
        auto reader = RecordReader::open(*db);
        for (uint64_t i = 0; i < db->count(); ++i) reader->read(i);
      });
      CHECK(why.startsWith(kj::str("cannot open the record database ", cut, ": ")));
      CHECK(why.endsWith(WAY_OUT));
    }
  }
}

TEST_CASE("RecordDb: knows the names of classes and the origin if they were written") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  writeRecords(path, 3);
  auto without = RecordDb::open(path);
  CHECK(without->classNames().size() == 0);
  CHECK(without->origin() == "");
  auto writer = RecordWriter::create(scratch.path("named.mdb"));
  for (uint64_t i = 0; i < 3; ++i) writer->add(i % 10, i, Encoding::RAW, SHAPE, pixels(i));
  auto names = kj::arr(kj::str("cat"), kj::str(""), kj::str("a\nb"));
  writer->finish({"image_folder", names, "source: x"});
  auto db = RecordDb::open(scratch.path("named.mdb"));
  CHECK(kj::strArray(db->classNames(), ",") == "cat,,a b");
  CHECK(db->origin() == "source: x");
  CHECK(db->digest() == without->digest());
}

TEST_CASE("RecordReader: refuses a damaged record, and reads its neighbours") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  writeRecords(path, 100);
  // The payload of record 42 occurs once in the file.
  auto bytes = fileOf(path);
  auto payload = pixels(42);
  auto place =
      static_cast<kj::byte*>(memmem(bytes.begin(), bytes.size(), payload.begin(), payload.size()));
  REQUIRE(place != nullptr);
  place[10] ^= 1;
  scratch.write("records.mdb", bytes);
  auto db = RecordDb::open(path);
  auto reader = RecordReader::open(*db);
  CHECK(reader->read(41).id == 41);
  CHECK(reader->read(43).id == 43);
  CHECK(thrownBy([&]() { reader->read(42); }) ==
        kj::str("record 42 (image 42 of the source, counted from 0) of ", path,
            " is bad: its checksum is wrong", WAY_OUT));
}

TEST_CASE(
    "RecordReader: refuses a record that contradicts its database, whatever its checksum is") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  writeRecords(path, 30);
  auto whole = fileOf(path);
  auto payload = pixels(20);
  // Changes the header of record 20, and corrects its checksum.
  auto refusal = [&](kj::FunctionParam<void(RecordHeader&)> change) {
    auto bytes = kj::heapArray(whole.asPtr());
    auto place = static_cast<kj::byte*>(
        memmem(bytes.begin(), bytes.size(), payload.begin(), payload.size()));
    REQUIRE(place != nullptr);
    RecordHeader header;
    memcpy(&header, place - sizeof(header), sizeof(header));
    change(header);
    header.crc = checksum(header, payload);
    memcpy(place - sizeof(header), &header, sizeof(header));
    scratch.write("records.mdb", bytes);
    auto db = RecordDb::open(path);
    auto reader = RecordReader::open(*db);
    CHECK(reader->read(21).id == 21);
    return thrownBy([&]() { reader->read(20); });
  };
  auto refused = [&](kj::StringPtr cause) {
    return kj::str("record 20 (image 20 of the source, counted from 0) of ", path,
        " is bad: ", cause, WAY_OUT);
  };
  CHECK(refusal([](RecordHeader&) {}) == "");
  CHECK(refusal([](RecordHeader& header) { header.label = 10; }) ==
        refused("its label is larger than all others"));
  CHECK(refusal([](RecordHeader& header) { std::swap(header.height, header.width); }) ==
        refused("its image has another size than all others"));
  // The product of these is 60 in 64 bits: 2^62 + 1 = (2^31 - 2^16 + 1) · (2^31 + 2^16 + 1).
  CHECK(refusal([](RecordHeader& header) {
    header.channels = 60;
    header.height = 0x7fff0001;
    header.width = 0x80010001;
  }) == refused("an image cannot have the size in its header"));
  CHECK(refusal([](RecordHeader& header) { header.encoding = uint8_t(Encoding::JPEG); }) == "");
  CHECK(refusal([](RecordHeader& header) {
    header.encoding = uint8_t(Encoding::JPEG);
    header.channels = 2;
  }) == refused("it is a JPEG file, but its header gives neither 1 nor 3 channels"));
}

TEST_CASE("badRecord: names the image's file if the database knows it") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  auto writer = RecordWriter::create(path);
  writer->add(0, 0, Encoding::RAW, SHAPE, pixels(0), "cat/1.jpg");
  writer->add(0, 9, Encoding::RAW, SHAPE, pixels(1), "Äpfel/2.jpg");
  writer->finish();
  auto db = RecordDb::open(path);
  CHECK(KJ_ASSERT_NONNULL(db->source(0)) == "cat/1.jpg");
  CHECK(db->source(2) == nullptr);
  CHECK(badRecord(*db, 1, uint64_t(9), "no reason") ==
        kj::str("record 1 (Äpfel/2.jpg) of ", path, " is bad: no reason"));
  CHECK(RecordReader::open(*db)->read(1).id == 9);
}

TEST_CASE("RecordWriter: the values in the file have the documented layout") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  writeRecords(path, 3);
  MDB_env* env = nullptr;
  REQUIRE(mdb_env_create(&env) == MDB_SUCCESS);
  KJ_DEFER(mdb_env_close(env));
  REQUIRE(mdb_env_open(env, path.cStr(), MDB_RDONLY | MDB_NOSUBDIR | MDB_NOLOCK, 0) == MDB_SUCCESS);
  MDB_txn* txn = nullptr;
  REQUIRE(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn) == MDB_SUCCESS);
  KJ_DEFER(mdb_txn_abort(txn));
  MDB_dbi dbi;
  REQUIRE(mdb_dbi_open(txn, nullptr, 0, &dbi) == MDB_SUCCESS);
  auto valueOf = [&](uint64_t number) {
    auto bigEndian = __builtin_bswap64(number);
    MDB_val key = {sizeof(bigEndian), &bigEndian}, value;
    REQUIRE(mdb_get(txn, dbi, &key, &value) == MDB_SUCCESS);
    return kj::arrayPtr(static_cast<const kj::byte*>(value.mv_data), value.mv_size);
  };
  auto u32 = [](kj::ArrayPtr<const kj::byte> bytes, size_t at) {
    uint32_t number;
    memcpy(&number, bytes.begin() + at, sizeof(number));
    return number;
  };

  auto record = valueOf(2);
  REQUIRE(record.size() == 40 + SHAPE.size());
  CHECK(kj::heapString(record.slice(0, 4).asChars()) == "RREC");
  CHECK(u32(record, 8) == 2);    // label
  CHECK(u32(record, 12) == 4);   // height
  CHECK(u32(record, 16) == 5);   // width
  CHECK(u32(record, 20) == 60);  // size
  CHECK(u32(record, 24) == 2);   // id
  auto crc = crc32_z(crc32_z(0, record.begin(), 32), record.begin() + 40, 60);
  CHECK(u32(record, 32) == crc);
  CHECK(u32(record, 36) == 0);

  auto description = valueOf(kj::maxValue);
  REQUIRE(description.size() == 72);
  CHECK(kj::heapString(description.slice(0, 4).asChars()) == "RDES");
  CHECK(u32(description, 4) == 1);   // version
  CHECK(u32(description, 8) == 3);   // count
  CHECK(u32(description, 16) == 3);  // classes
  CHECK(u32(description, 20) == 3);  // channels
  CHECK(u32(description, 64) == crc32_z(0, description.begin(), 64));
  CHECK(u32(description, 68) == 0);
}

TEST_CASE(
    "RecordDb: a database with a changed byte in its structure is refused or reads as before") {
  Scratch scratch;
  auto path = scratch.path("records.mdb");
  // Both ways to store a value: beside its key, and in separate pages.
  auto large = kj::heapArray<kj::byte>(3 * 40 * 40);
  memset(large.begin(), 3, large.size());
  {
    auto writer = RecordWriter::create(path);
    for (uint64_t i = 0; i < 150; ++i) {
      bool isLarge = i % 50 == 0;
      writer->add(i % 10, i, Encoding::RAW, isLarge ? ImageShape{3, 40, 40} : SHAPE,
          isLarge ? large.asPtr() : pixels(i).asPtr(), kj::str(i, ".jpg"));
    }
    writer->finish();
  }
  auto bytes = fileOf(path);
  auto damaged = scratch.path("damaged.mdb");
  int fd = ::open(damaged.cStr(), O_RDWR | O_CREAT, 0666);
  REQUIRE(fd >= 0);
  kj::AutoCloseFd owned(fd);
  REQUIRE(::pwrite(fd, bytes.begin(), bytes.size(), 0) == ssize_t(bytes.size()));
  uint64_t refused = 0, tried = 0;
  auto tryToRead = [&]() {
    ++tried;
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() {
                  auto db = RecordDb::open(damaged);
                  KJ_ASSERT(db->count() == 150);
                  auto reader = RecordReader::open(*db);
                  for (uint64_t i = 0; i < 150; ++i) {
                    if (i % 30 == 0) db->source(i);
                    reader->read(i);
                  }
                })) {
      ++refused;
      bool named = memmem(e->getDescription().begin(), e->getDescription().size(), damaged.begin(),
                       damaged.size()) != nullptr;
      CHECK(named);
    }
  };
  // The heads of all pages: the two meta pages, and the parts with offsets and nodes of the others.
  constexpr size_t PAGE_BYTES = 4096, HEAD_BYTES = 40;
  for (size_t at = 0; at < bytes.size(); ++at) {
    if (at % PAGE_BYTES >= (at < 2 * PAGE_BYTES ? 160 : HEAD_BYTES)) continue;
    for (kj::byte value: {0, 255, bytes[at] ^ 1}) {
      if (value == bytes[at]) continue;
      REQUIRE(::pwrite(fd, &value, 1, at) == 1);
      tryToRead();
    }
    REQUIRE(::pwrite(fd, &bytes[at], 1, at) == 1);
  }
  CHECK(refused > 0);
  CHECK(refused < tried);
  refused = 0;
  tryToRead();
  CHECK(refused == 0);
}

}  // namespace io
