#include <fcntl.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <lmdb.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "configs/language/failure.h"
#include "configs/language/warning.h"
#include "io/checksum.h"
#include "io/paths.h"
#include "io/records/lmdb_file.h"
#include "io/records/record_db.h"
#include "io/records/record_format.h"

namespace io {

namespace {

// An LMDB key. It must live as long as the MDB_val made from it is used.
struct Key {
  explicit Key(uint64_t number): bigEndian(__builtin_bswap64(number)) {}
  MDB_val val() { return {sizeof(bigEndian), &bigEndian}; }
  uint64_t bigEndian;
};

// A commit after this many bytes keeps the number of dirty pages small.
constexpr size_t COMMIT_BYTES = size_t(16) << 20;

class Environment {
public:
  // Messages call the file `name`. `mapBytes` is the size of the address space. MDB_NOLOCK: LMDB's
  // lock file serves writers beside readers, which do not exist here. Its fcntl() locks are also
  // the reason why one process may not open a file twice.
  Environment(kj::StringPtr path, kj::StringPtr name, kj::StringPtr setting, uint flags,
      size_t mapBytes, kj::StringPtr doing) {
    check(mdb_env_create(&env), name, doing, setting);
    KJ_ON_SCOPE_FAILURE(mdb_env_close(env));
    check(mdb_env_set_mapsize(env, mapBytes), name, doing, setting);
    check(mdb_env_open(env, path.cStr(), flags | MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOTLS, 0644), name,
        doing, setting);
  }
  ~Environment() noexcept(false) { mdb_env_close(env); }
  KJ_DISALLOW_COPY(Environment);

  static void check(int result, kj::StringPtr name, kj::StringPtr doing, kj::StringPtr setting) {
    if (result == MDB_SUCCESS) return;
    auto type = isDiskFull(result) ? kj::Exception::Type::OVERLOADED : kj::Exception::Type::FAILED;
    kj::throwFatalException(kj::Exception(type, __FILE__, __LINE__,
        kj::str("cannot ", doing, " the record database ", name, ": ",
            mdb_strerror(isDiskFullNow(result, name) ? ENOSPC : result), wayOut(result, setting))));
  }

  // LMDB reports EIO if only a part of a page could be written.
  static bool isDiskFull(int result) {
    return result == ENOSPC || result == EFBIG || result == EIO;
  }

  // Whether LMDB means a full disk by EIO.
  static bool isDiskFullNow(int result, kj::StringPtr name) {
    struct statvfs disk;
    auto folder = kj::str(".");
    KJ_IF_MAYBE(slash, name.findLast('/')) folder = kj::heapString(name.slice(0, *slash + 1));
    return result == EIO && ::statvfs(folder.cStr(), &disk) == 0 &&
           uint64_t(disk.f_bavail) * disk.f_frsize < COMMIT_BYTES;
  }

  static kj::String wayOut(int result, kj::StringPtr setting) {
    switch (result) {
      case ENOSPC:
      case EFBIG:
      case EIO: {
        struct rlimit limit;
        if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
          return kj::str(". This process may write files of at most ", limit.rlim_cur,
              " bytes: raise that limit (`ulimit -f`), or free some space if the disk is full");
        }
        return kj::str(". If the disk is full, free some space, or set ", setting,
            " to a folder on another disk");
      }
      case EACCES:
      case EROFS:
        return kj::str(". Check the permissions of the file and its folder");
      default:
        return kj::str(". Set ", setting, " to a folder on another disk");
    }
  }

  MDB_env* env = nullptr;
};

// Address space beyond the end of the file: more than a transaction and its largest record need.
constexpr size_t MAP_AHEAD_BYTES = size_t(1) << 30;
constexpr size_t PAYLOAD_BYTES_MAX = size_t(1) << 28;

class LmdbRecordWriter final: public RecordWriter {
public:
  // What to do with the temporary file of a process that ended before finish().
  enum class Rest { REMOVED, KEPT };

  // Call open() before all other functions except readKept().
  LmdbRecordWriter(kj::StringPtr path, kj::String temporary, kj::StringPtr setting, Rest rest)
      : name(kj::str(path)), part(kj::mv(temporary)), setting(kj::str(setting)), rest(rest) {}

  // Reads the existing records in the temporary file. Returns whether the file is intact. LMDB
  // itself could crash on a damaged one. Passes on exceptions of `progress`.
  bool readKept(Progress& progress) {
    kj::Maybe<LmdbFile> file;
    auto open = [&]() { file.emplace(part, kj::str(part, " can no longer be read")); };
    if (kj::runCatchingExceptions(open) != nullptr) return false;
    kj::Maybe<kj::ArrayPtr<const kj::byte>> value;
    auto find = [&](uint64_t key) {
      return kj::runCatchingExceptions([&]() { value = KJ_ASSERT_NONNULL(file).find(key); }) ==
             nullptr;
    };
    for (;;) {
      if (!find(kept)) return false;
      KJ_IF_MAYBE(bytes, value) {
        auto header = headerOf(*bytes);
        if (header == nullptr) return false;
        countIn(KJ_ASSERT_NONNULL(header), *bytes);
      } else {
        break;
      }
      if (++kept % RECORDS_PER_REPORT == 0) {
        progress("checking the images that are packed already", kept, 0);
      }
    }
    if (!find(DESCRIPTION_KEY)) return false;
    isComplete = value != nullptr;
    // The key of the first entry after the records.
    return find(PATH_KEYS) && (value == nullptr || isComplete);
  }

  // Opens the temporary file, or makes it.
  void open() {
    // finish() syncs once.
    mapBytes = 2 * MAP_AHEAD_BYTES;
    environment.emplace(part, name, setting, MDB_NOSYNC, mapBytes, "create");
    begin();
  }

  void removePart() {
    if (::unlink(part.cStr()) != 0 && errno != ENOENT) {
      configs::warn(
          kj::str("cannot remove the unfinished record database ", part, ": ", strerror(errno)));
    }
  }

  ~LmdbRecordWriter() noexcept(false) {
    if (txn != nullptr) mdb_txn_abort(txn);
    environment = nullptr;
    if (rest == Rest::REMOVED) removePart();
  }

  void add(uint32_t label, uint64_t id, Encoding encoding, ImageShape shape,
      kj::ArrayPtr<const kj::byte> bytes, kj::StringPtr source) override {
    KJ_REQUIRE(shape.channels <= 255 && bytes.size() <= PAYLOAD_BYTES_MAX &&
                   label < std::numeric_limits<int32_t>::max(),
        "a record is too large", name, id);
    KJ_REQUIRE(!hasKept() && !isComplete, "there are records that were not taken", name, id);
    RecordHeader header = {{'R', 'R', 'E', 'C'}, RECORD_VERSION, static_cast<uint8_t>(encoding),
        static_cast<uint8_t>(shape.channels), label, shape.height, shape.width,
        static_cast<uint32_t>(bytes.size()), id, 0, 0};
    header.crc = checksum(header, bytes);
    auto value = put(records, sizeof(header) + bytes.size());
    memcpy(value, &header, sizeof(header));
    memcpy(value + sizeof(header), bytes.begin(), bytes.size());
    countIn(header, kj::arrayPtr(value, sizeof(header) + bytes.size()));
    ++records;
    addSource(id, source);
    commitIfLarge();
  }

  uint64_t count() const override { return records; }

  bool hasKept() const override { return records < kept; }

  bool takeKept(uint32_t label, uint64_t id, kj::StringPtr source) override {
    if (!hasKept()) return false;
    Key key(records);
    auto keyVal = key.val();
    MDB_val value;
    check(mdb_get(txn, dbi, &keyVal, &value), "read");
    RecordHeader header;
    memcpy(&header, value.mv_data, sizeof(header));
    if (header.label != label || header.id != id) {
      configs::fail("the unfinished record database ", part, " is not of these images. Remove it");
    }
    ++records;
    addSource(id, source);
    return true;
  }

  void finish(const RecordsOrigin& origin) override {
    KJ_REQUIRE(!hasKept() && (!isComplete || records == kept), "it has more records", name);
    if (!isComplete) complete(origin);
    commit();
    KJ_IF_MAYBE(e, environment) {
      check(mdb_env_sync(e->env, 1), "sync");
    }
    environment = nullptr;
    moveIntoPlace(part, name);
  }

private:
  void check(int result, kj::StringPtr doing) const {
    Environment::check(result, name, doing, setting);
  }

  // Returns the header of a record's value. Null if the value is damaged.
  static kj::Maybe<RecordHeader> headerOf(kj::ArrayPtr<const kj::byte> value) {
    RecordHeader header;
    if (value.size() < sizeof(header)) return nullptr;
    memcpy(&header, value.begin(), sizeof(header));
    auto bytes = value.slice(sizeof(header), value.size());
    bool isWhole = memcmp(header.magic, "RREC", 4) == 0 && header.version == RECORD_VERSION &&
                   header.size == bytes.size() && header.crc == checksum(header, bytes);
    if (!isWhole) return nullptr;
    return header;
  }

  // Counts the value of the next record in.
  void countIn(const RecordHeader& header, kj::ArrayPtr<const kj::byte> value) {
    digest.update(value);
    ImageShape shape = {header.channels, header.height, header.width};
    if (classes == 0) common = shape;
    KJ_IF_MAYBE(c, common) {
      if (!(*c == shape)) common = nullptr;
    }
    classes = kj::max(classes, header.label + 1);
  }

  void addSource(uint64_t id, kj::StringPtr source) {
    if (source.size() > 0) sources.add(kj::str(source));
    KJ_REQUIRE(sources.size() == 0 || sources.size() == records, "a record has no source", id);
  }

  // Writes the entries that follow the records.
  void complete(const RecordsOrigin& origin) {
    // All in one transaction: readKept() accepts a file without any of these entries or with all of
    // them, but not with only some.
    for (auto i: kj::indices(sources)) putText(PATH_KEYS + i, sources[i]);
    putText(ORIGIN_KEY, origin.facts);
    auto names = KJ_MAP(name, origin.classNames) {
      return replaced(name, "\n", " ");
    };
    putText(CLASSES_KEY, kj::strArray(names, "\n"));
    putText(DATASET_KEY, origin.dataset);
    auto shape = common.orDefault(ImageShape{0, 0, 0});
    Description description = {{'R', 'D', 'E', 'S'}, RECORD_VERSION, records, classes,
        shape.channels, shape.height, shape.width, {}, 0, 0};
    auto sum = digest.finish();
    memcpy(description.digest, sum.begin(), sizeof(description.digest));
    description.crc = checksum(description);
    memcpy(put(DESCRIPTION_KEY, sizeof(description)), &description, sizeof(description));
  }

  // Returns room for the value of `number`, to be filled before the next call. Keys come in order,
  // so that pages become full.
  kj::byte* put(uint64_t number, size_t size) {
    Key key(number);
    auto keyVal = key.val();
    MDB_val value = {size, nullptr};
    check(mdb_put(txn, dbi, &keyVal, &value, MDB_APPEND | MDB_RESERVE), "write");
    uncommittedBytes += size;
    return static_cast<kj::byte*>(value.mv_data);
  }

  // Writes nothing if `text` is empty.
  void putText(uint64_t number, kj::StringPtr text) {
    if (text.size() > 0) memcpy(put(number, text.size()), text.begin(), text.size());
  }

  void begin() {
    auto env = KJ_ASSERT_NONNULL(environment).env;
    MDB_envinfo info;
    MDB_stat stat;
    check(mdb_env_info(env, &info), "write");
    check(mdb_env_stat(env, &stat), "write");
    size_t needed = (info.me_last_pgno + 1) * stat.ms_psize + MAP_AHEAD_BYTES;
    if (needed > mapBytes) {
      while (needed > mapBytes) mapBytes *= 2;
      check(mdb_env_set_mapsize(env, mapBytes), "write");
    }
    check(mdb_txn_begin(env, nullptr, 0, &txn), "write");
    check(mdb_dbi_open(txn, nullptr, 0, &dbi), "write");
    uncommittedBytes = 0;
  }

  void commitIfLarge() {
    if (uncommittedBytes <= COMMIT_BYTES) return;
    commit();
    startWriting();
    // LMDB leaves old content of its memory in the unused parts of pages. A process that continues
    // this file has other memory, but must write the same bytes.
    environment = nullptr;
    open();
  }

  void commit() {
    // The transaction is over, whether or not this call succeeds.
    int result = mdb_txn_commit(txn);
    txn = nullptr;
    check(result, "write");
  }

  // Starts writing the committed pages to the disk, so that finish() has less to wait for. If this
  // fails, finish() does everything.
  void startWriting() {
    mdb_filehandle_t file;
    check(mdb_env_get_fd(KJ_ASSERT_NONNULL(environment).env, &file), "write");
    ::sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
  }

  kj::String name;
  kj::String part;
  kj::String setting;
  Rest rest;
  kj::Maybe<Environment> environment;
  size_t mapBytes = 0;
  MDB_txn* txn = nullptr;
  MDB_dbi dbi = 0;
  size_t uncommittedBytes = 0;
  uint64_t records = 0;
  uint32_t classes = 0;
  kj::Vector<kj::String> sources;  // one per record, or none
  kj::Maybe<ImageShape> common;
  Sha256 digest;
  uint64_t kept = 0;        // how many of the records are those of a killed process
  bool isComplete = false;  // whether that process had written the entries after the records
};

}  // namespace

kj::Own<RecordWriter> RecordWriter::create(kj::StringPtr path, kj::StringPtr setting) {
  auto writer = kj::heap<LmdbRecordWriter>(
      path, kj::str(path, ".part-", ::getpid()), setting, LmdbRecordWriter::Rest::REMOVED);
  writer->removePart();
  writer->open();
  return writer;
}

kj::Own<RecordWriter> RecordWriter::resume(
    kj::StringPtr path, kj::StringPtr setting, Progress& progress) {
  auto part = kj::str(path, ".part");
  if (pathKind(part) == PathKind::NOTHING && pathKind(path) == PathKind::FILE) {
    moveIntoPlace(path, part);
  }
  auto make = [&]() {
    return kj::heap<LmdbRecordWriter>(path, kj::str(part), setting, LmdbRecordWriter::Rest::KEPT);
  };
  auto writer = make();
  if (pathKind(part) == PathKind::FILE && !writer->readKept(progress)) {
    writer = make();
    writer->removePart();
  }
  writer->open();
  return writer;
}

}  // namespace io
