// The file format, version 1. An LMDB file without folder (MDB_NOSUBDIR); keys are 8 bytes,
// big-endian, so that their order is that of the numbers: 0 … count-1 are the records, 2^64-1 is
// the description. Numbers inside values are little-endian.
//
//   record                                     description
//    0  u32  magic "RREC"                       0  u32  magic "RDES"
//    4  u16  version                            4  u32  version
//    6  u8   encoding: 0 raw, 1 JPEG            8  u64  count
//    7  u8   channels                          16  u32  classes: the largest label + 1
//    8  u32  label                             20  u32  channels  \.
//   12  u32  height                            24  u32  height     } all 0 if images differ
//   16  u32  width                             28  u32  width     /
//   20  u32  size of the payload               32  32 bytes: SHA-256 over all values, in order
//   24  u64  id                                64  u32  CRC-32 of bytes 0 … 63
//   32  u32  CRC-32 of bytes 0 … 31 and of
//            the payload
//   36  u32  0
//   40  payload: C×H×W bytes, or a JPEG file

#include "io/record_db.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

#include "configs/language/failure.h"
#include "io/checksum.h"

namespace io {

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

constexpr uint32_t VERSION = 1;
constexpr uint64_t DESCRIPTION_KEY = std::numeric_limits<uint64_t>::max();

struct RecordHeader {
  char magic[4];
  uint16_t version;
  uint8_t encoding;
  uint8_t channels;
  uint32_t label;
  uint32_t height;
  uint32_t width;
  uint32_t size;
  uint64_t id;
  uint32_t crc;
  uint32_t zero;
};
static_assert(sizeof(RecordHeader) == 40 && offsetof(RecordHeader, crc) == 32);

struct Description {
  char magic[4];
  uint32_t version;
  uint64_t count;
  uint32_t classes;
  uint32_t channels;
  uint32_t height;
  uint32_t width;
  kj::byte digest[32];
  uint32_t crc;
  uint32_t zero;
};
static_assert(sizeof(Description) == 72 && offsetof(Description, crc) == 64);

constexpr kj::StringPtr WAY_OUT =
    "; delete this file and the next run imports the data again (if pack_records wrote it: pack "
    "again)"_kj;

uint32_t checksum(const RecordHeader& header, kj::ArrayPtr<const kj::byte> payload) {
  auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(&header), offsetof(RecordHeader, crc));
  return crc32_z(crc, payload.begin(), payload.size());
}

uint32_t checksum(const Description& description) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(&description), offsetof(Description, crc));
}

// An LMDB key: it lives as long as the MDB_val made from it is used.
struct Key {
  explicit Key(uint64_t number): bigEndian(__builtin_bswap64(number)) {}
  MDB_val val() { return {sizeof(bigEndian), &bigEndian}; }
  uint64_t bigEndian;
};

class Environment {
public:
  // `mapBytes` is the address space taken. MDB_NOLOCK: LMDB's lock file serves writers beside
  // readers, which do not exist here. Its fcntl() locks are also what forbids opening a file twice
  // in one process.
  Environment(kj::StringPtr path, uint flags, size_t mapBytes, kj::StringPtr doing) {
    check(mdb_env_create(&env), path, doing);
    KJ_ON_SCOPE_FAILURE(mdb_env_close(env));
    check(mdb_env_set_mapsize(env, mapBytes), path, doing);
    check(mdb_env_open(env, path.cStr(), flags | MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOTLS, 0644), path,
        doing);
  }
  ~Environment() noexcept(false) { mdb_env_close(env); }
  KJ_DISALLOW_COPY(Environment);

  static void check(int result, kj::StringPtr path, kj::StringPtr doing) {
    if (result != MDB_SUCCESS) {
      configs::fail("cannot ", doing, " the record database ", path, ": ", mdb_strerror(result),
          wayOut(result));
    }
  }

  static kj::StringPtr wayOut(int result) {
    switch (result) {
      case ENOSPC:
      // What LMDB says when only a part of a page fits on the disk.
      case EIO:
        return "; is the disk full? make room, or set RUNNER_CACHE to a folder on another disk"_kj;
      case EACCES:
      case EROFS:
        return "; look at the rights of the file and its folder"_kj;
      default:
        return WAY_OUT;
    }
  }

  MDB_env* env = nullptr;
};

size_t fileBytes(kj::StringPtr path) {
  struct stat status;
  if (::stat(path.cStr(), &status) != 0) {
    configs::fail("cannot open the record database ", path, ": ", strerror(errno));
  }
  if (!S_ISREG(status.st_mode) || status.st_size == 0) {
    configs::fail("cannot open the record database ", path, ": it is no file, or empty", WAY_OUT);
  }
  return status.st_size;
}

class LmdbRecordDb final: public RecordDb {
public:
  explicit LmdbRecordDb(kj::StringPtr path)
      : name(kj::str(path)), bytes(fileBytes(path)), environment(path, MDB_RDONLY, bytes, "open") {
    // LMDB trusts the file's own page numbers: beyond the end of a file that was cut short they are
    // a SIGBUS.
    MDB_envinfo info;
    MDB_stat stat;
    Environment::check(mdb_env_info(environment.env, &info), path, "open");
    Environment::check(mdb_env_stat(environment.env, &stat), path, "open");
    if ((info.me_last_pgno + 1) * stat.ms_psize > bytes) {
      configs::fail("cannot open the record database ", path, ": the file is cut short", WAY_OUT);
    }
    readDescription();
  }

  uint64_t count() const override { return description.count; }
  uint classes() const override { return description.classes; }
  kj::Maybe<ImageShape> shape() const override {
    if (description.channels == 0) return nullptr;
    return ImageShape{description.channels, description.height, description.width};
  }
  kj::ArrayPtr<const kj::byte> digest() const override { return description.digest; }
  kj::StringPtr path() const override { return name; }

  MDB_txn* begin() const {
    MDB_txn* txn = nullptr;
    Environment::check(mdb_txn_begin(environment.env, nullptr, MDB_RDONLY, &txn), name, "read");
    return txn;
  }

  MDB_dbi dbi = 0;

private:
  void readDescription() {
    auto txn = begin();
    KJ_DEFER(mdb_txn_abort(txn));
    Environment::check(mdb_dbi_open(txn, nullptr, 0, &dbi), name, "open");
    Key key(DESCRIPTION_KEY);
    auto keyVal = key.val();
    MDB_val value;
    kj::StringPtr cause = nullptr;
    if (mdb_get(txn, dbi, &keyVal, &value) != MDB_SUCCESS || value.mv_size != sizeof(description) ||
        memcmp(value.mv_data, "RDES", 4) != 0) {
      cause = "it holds something else, or is not finished"_kj;
    } else {
      memcpy(&description, value.mv_data, sizeof(description));
      if (description.version != VERSION) {
        cause = "it was written by another version of this program"_kj;
      } else if (description.crc != checksum(description)) {
        cause = "its description is damaged"_kj;
      }
    }
    if (cause != nullptr) {
      configs::fail("cannot open the record database ", name, ": ", cause, WAY_OUT);
    }
  }

  kj::String name;
  size_t bytes;
  Environment environment;
  Description description;
};

class LmdbRecordReader final: public RecordReader {
public:
  explicit LmdbRecordReader(const LmdbRecordDb& db): db(db), txn(db.begin()) {}
  ~LmdbRecordReader() noexcept(false) { mdb_txn_abort(txn); }

  Record read(uint64_t index) override {
    KJ_REQUIRE(index < db.count(), "there are fewer records", db.path(), index, db.count());
    kj::Maybe<uint64_t> id;
    auto refuse = [&](kj::StringPtr cause) {
      configs::fail(badRecord(db, index, id, cause), WAY_OUT);
    };
    Key key(index);
    auto keyVal = key.val();
    MDB_val value;
    int result = mdb_get(txn, db.dbi, &keyVal, &value);
    if (result != MDB_SUCCESS) refuse(mdb_strerror(result));
    RecordHeader header;
    if (value.mv_size < sizeof(header)) refuse("it is shorter than its header");
    memcpy(&header, value.mv_data, sizeof(header));
    auto payload = kj::arrayPtr(static_cast<const kj::byte*>(value.mv_data), value.mv_size)
                       .slice(sizeof(header), value.mv_size);
    if (memcmp(header.magic, "RREC", 4) != 0 || header.version != VERSION ||
        header.encoding > Encoding::JPEG || header.size != payload.size()) {
      refuse("its header is wrong");
    }
    // A guess until the checksum is good, and a good one: pixels are more than a header.
    id = header.id;
    if (header.crc != checksum(header, payload)) refuse("its checksum is wrong");
    ImageShape shape = {header.channels, header.height, header.width};
    if (header.encoding == Encoding::RAW && shape.size() != payload.size()) {
      refuse("its size is not that of its pixels");
    }
    return {header.label, header.id, static_cast<Encoding::Word>(header.encoding), shape, payload};
  }

private:
  const LmdbRecordDb& db;
  MDB_txn* txn;
};

// A commit every so many bytes keeps the dirty pages in memory few.
constexpr size_t COMMIT_BYTES = size_t(64) << 20;
// Address space ahead of the file's end: more than a transaction and its largest record can take.
constexpr size_t MAP_AHEAD_BYTES = size_t(1) << 30;
constexpr size_t PAYLOAD_BYTES_MAX = size_t(1) << 28;

class LmdbRecordWriter final: public RecordWriter {
public:
  explicit LmdbRecordWriter(kj::StringPtr path)
      : name(kj::str(path)), part(kj::str(path, ".part-", ::getpid())) {
    removePart();
    // Synced once, by finish().
    environment.emplace(part, MDB_NOSYNC, 2 * MAP_AHEAD_BYTES, "create");
    mapBytes = 2 * MAP_AHEAD_BYTES;
    begin();
  }

  ~LmdbRecordWriter() noexcept(false) {
    if (txn != nullptr) mdb_txn_abort(txn);
    environment = nullptr;
    removePart();
  }

  void add(uint32_t label, uint64_t id, Encoding::Word encoding, ImageShape shape,
      kj::ArrayPtr<const kj::byte> bytes) override {
    KJ_REQUIRE(shape.channels <= 255 && bytes.size() <= PAYLOAD_BYTES_MAX &&
                   label < std::numeric_limits<int32_t>::max(),
        "a record is too large", name, id);
    RecordHeader header = {{'R', 'R', 'E', 'C'}, VERSION, static_cast<uint8_t>(encoding),
        static_cast<uint8_t>(shape.channels), label, shape.height, shape.width,
        static_cast<uint32_t>(bytes.size()), id, 0, 0};
    header.crc = checksum(header, bytes);
    auto value = put(count, sizeof(header) + bytes.size());
    memcpy(value, &header, sizeof(header));
    memcpy(value + sizeof(header), bytes.begin(), bytes.size());
    digest.update(kj::arrayPtr(value, sizeof(header) + bytes.size()));

    classes = kj::max(classes, label + 1);
    if (count == 0) common = shape;
    KJ_IF_MAYBE(c, common) {
      if (!(*c == shape)) common = nullptr;
    }
    ++count;
    if (uncommittedBytes > COMMIT_BYTES) {
      commit();
      begin();
    }
  }

  void finish() override {
    auto shape = common.orDefault(ImageShape{0, 0, 0});
    Description description = {{'R', 'D', 'E', 'S'}, VERSION, count, classes, shape.channels,
        shape.height, shape.width, {}, 0, 0};
    auto sum = digest.finish();
    memcpy(description.digest, sum.begin(), sizeof(description.digest));
    description.crc = checksum(description);
    memcpy(put(DESCRIPTION_KEY, sizeof(description)), &description, sizeof(description));
    commit();
    KJ_IF_MAYBE(e, environment) {
      Environment::check(mdb_env_sync(e->env, 1), part, "sync");
    }
    environment = nullptr;
    if (::rename(part.cStr(), name.cStr()) != 0) {
      configs::fail("cannot move ", part, " to ", name, ": ", strerror(errno));
    }
  }

private:
  // Room for the value of `number`, to be filled before the next call. Keys come in order, so pages
  // are filled whole.
  kj::byte* put(uint64_t number, size_t size) {
    Key key(number);
    auto keyVal = key.val();
    MDB_val value = {size, nullptr};
    Environment::check(mdb_put(txn, dbi, &keyVal, &value, MDB_APPEND | MDB_RESERVE), part, "write");
    uncommittedBytes += size;
    return static_cast<kj::byte*>(value.mv_data);
  }

  void begin() {
    auto env = KJ_ASSERT_NONNULL(environment).env;
    MDB_envinfo info;
    MDB_stat stat;
    Environment::check(mdb_env_info(env, &info), part, "write");
    Environment::check(mdb_env_stat(env, &stat), part, "write");
    if ((info.me_last_pgno + 1) * stat.ms_psize + MAP_AHEAD_BYTES > mapBytes) {
      mapBytes *= 2;
      Environment::check(mdb_env_set_mapsize(env, mapBytes), part, "write");
    }
    Environment::check(mdb_txn_begin(env, nullptr, 0, &txn), part, "write");
    Environment::check(mdb_dbi_open(txn, nullptr, 0, &dbi), part, "write");
    uncommittedBytes = 0;
  }

  void commit() {
    // The transaction is gone whether or not this succeeds.
    int result = mdb_txn_commit(txn);
    txn = nullptr;
    Environment::check(result, part, "write");
  }

  void removePart() {
    if (::unlink(part.cStr()) != 0 && errno != ENOENT) {
      auto cause = kj::StringPtr(strerror(errno));
      KJ_LOG(WARNING, "cannot remove an unfinished database", part, cause);
    }
  }

  kj::String name;
  kj::String part;
  kj::Maybe<Environment> environment;
  size_t mapBytes = 0;
  MDB_txn* txn = nullptr;
  MDB_dbi dbi = 0;
  size_t uncommittedBytes = 0;
  uint64_t count = 0;
  uint32_t classes = 0;
  kj::Maybe<ImageShape> common;
  Sha256 digest;
};

}  // namespace

kj::Own<RecordDb> RecordDb::open(kj::StringPtr path) {
  return kj::heap<LmdbRecordDb>(path);
}

kj::Own<RecordReader> RecordReader::open(const RecordDb& db) {
  return kj::heap<LmdbRecordReader>(kj::downcast<const LmdbRecordDb>(db));
}

kj::String badRecord(
    const RecordDb& db, uint64_t index, kj::Maybe<uint64_t> id, kj::StringPtr cause) {
  kj::String image;
  KJ_IF_MAYBE(i, id) image = kj::str(" (image ", *i, " of the source, counted from 0)");
  return kj::str("record ", index, image, " of ", db.path(), " is bad: ", cause);
}

kj::Own<RecordWriter> RecordWriter::create(kj::StringPtr path) {
  return kj::heap<LmdbRecordWriter>(path);
}

}  // namespace io
