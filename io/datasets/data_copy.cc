#include "io/datasets/data_copy.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "configs/language/environment.h"
#include "configs/language/failure.h"
#include "io/datasets/datasets.h"
#include "io/datasets/import.h"
#include "io/images/mean_file.h"
#include "io/paths.h"
#include "io/records/record_db.h"

namespace io {

namespace {

// The files in a folder of packed records that training needs.
constexpr kj::StringPtr NAMES[] = {TRAINING_FILE, VALIDATION_FILE, MEAN_FILE};
constexpr size_t DATABASES = 2;

constexpr uint64_t FILE_BYTES_MAX = uint64_t(1) << 50;
constexpr size_t SHA256_DIGITS = 64;
// How many bytes may be waiting to be written to the disk. A process that waits for more would seem
// silent.
constexpr uint64_t SYNC_BYTES = 16 << 20;

kj::String checkedSha256(kj::StringPtr text) {
  bool isSum = text.size() == SHA256_DIGITS;
  for (char c: text) isSum = isSum && (('0' <= c && c <= '9') || ('a' <= c && c <= 'f'));
  if (!isSum) configs::fail("the name of the copy of a data set is not a SHA-256");
  return kj::str(text);
}

kj::Array<PackedFile> checkedFiles(kj::Array<PackedFile> files) {
  bool areRight = DATABASES <= files.size() && files.size() <= kj::size(NAMES);
  for (size_t i = 0; areRight && i < files.size(); i++) {
    areRight = files[i].name == NAMES[i] && files[i].size_bytes <= FILE_BYTES_MAX;
  }
  if (!areRight) configs::fail("the files of the copy are not those of packed records");
  return files;
}

// Calls `use` with each file that `bytes`, from `offset` of the sequence on, lie in: its number,
// the offset in it, and its piece of `bytes`.
template <typename Bytes, typename Func>
void forEachPiece(kj::ArrayPtr<const PackedFile> files, uint64_t offset, Bytes bytes, Func&& use) {
  for (size_t i: kj::indices(files)) {
    auto size = files[i].size_bytes;
    if (offset >= size) {
      offset -= size;
      continue;
    }
    size_t count = kj::min(size - offset, bytes.size());
    if (count > 0) use(i, offset, bytes.slice(0, count));
    bytes = bytes.slice(count, bytes.size());
    offset = 0;
  }
  KJ_REQUIRE(bytes.size() == 0, "beyond the end");
}

uint64_t sizeOf(int fd) {
  struct stat status;
  KJ_SYSCALL(::fstat(fd, &status));
  return status.st_size;
}

constexpr kj::StringPtr OTHER_FOLDER = ". Set RUNNER_CACHE to a folder that can be written"_kj;

void makeFolder(kj::StringPtr path) {
  std::error_code error;
  std::filesystem::create_directories(path.cStr(), error);
  if (error) configs::fail("cannot make the folder ", path, ": ", error.message(), OTHER_FOLDER);
}

}  // namespace

uint64_t PackedFiles::size_bytes() const {
  uint64_t sum = 0;
  for (auto& file: files) sum += file.size_bytes;
  return sum;
}

void PackedFiles::read(uint64_t offset, kj::ArrayPtr<kj::byte> to) const {
  forEachPiece(files, offset, to, [this](size_t i, uint64_t at, kj::ArrayPtr<kj::byte> piece) {
    while (piece.size() > 0) {
      auto count = ::pread(opened[i], piece.begin(), piece.size(), at);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) configs::fail(files[i].name, " cannot be read: ", strerror(errno));
      if (count == 0) configs::fail(files[i].name, " became shorter while it was copied");
      piece = piece.slice(count, piece.size());
      at += count;
    }
  });
}

PackedData::PackedData(const DataConfig& config) {
  auto dataset = openDataset(config, unheard());
  recordsSha256 = io::recordsSha256(dataset->training(), dataset->validation());
  name = kj::str(baseName(withoutSlash(dataset->folder())));
  kj::Vector<PackedFile> found;
  for (auto& name: NAMES) {
    auto file = kj::str(dataset->folder(), "/", name);
    if (name == MEAN_FILE && pathKind(file) != PathKind::FILE) continue;
    int fd = ::open(file.cStr(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) configs::fail("cannot open ", file, ": ", strerror(errno));
    opened.add(kj::AutoCloseFd(fd));
    found.add(PackedFile{kj::str(name), sizeOf(fd)});
  }
  files = found.releaseAsArray();
}

DataCopy::DataCopy(kj::StringPtr recordsSha256, kj::StringPtr name, kj::Array<PackedFile> wanted)
    : sha256(checkedSha256(recordsSha256)),
      imported(kj::str(configs::cacheFolder(), "/", baseName(name))),
      path(kj::str(configs::cacheFolder(), "/copy-", sha256)),
      part(kj::str(path, ".part")) {
  files = checkedFiles(kj::mv(wanted));
}

bool DataCopy::hasRecords(kj::StringPtr folder) const {
  bool areThey = false;
  // A damaged copy counts as absent.
  auto ignored = kj::runCatchingExceptions([&]() {
    auto training = RecordDb::open(kj::str(folder, "/", TRAINING_FILE));
    auto validation = RecordDb::open(kj::str(folder, "/", VALIDATION_FILE));
    areThey = io::recordsSha256(*training, *validation) == sha256;
  });
  return areThey;
}

kj::Maybe<kj::String> DataCopy::find() const {
  if (hasRecords(imported)) return kj::str(imported);
  for (size_t i = 0; i < DATABASES; i++) {
    struct stat status;
    auto file = kj::str(path, "/", files[i].name);
    if (::stat(file.cStr(), &status) != 0) return nullptr;
    if (uint64_t(status.st_size) != files[i].size_bytes) return nullptr;
  }
  if (!hasRecords(path)) return nullptr;
  return kj::str(path);
}

kj::String DataCopy::pathOf(size_t file) const {
  return kj::str(part, "/", files[file].name);
}

bool DataCopy::takeLock() {
  makeFolder(folderName(path));
  auto lockPath = kj::str(path, ".lock");
  int fd = ::open(lockPath.cStr(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) configs::fail("cannot make ", lockPath, ": ", strerror(errno), OTHER_FOLDER);
  kj::AutoCloseFd owned(fd);
  // On a file system without such locks, nothing keeps two processes apart.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  lock = kj::mv(owned);
  return true;
}

void DataCopy::open() {
  KJ_REQUIRE(lock != nullptr, "take the lock first");
  makeFolder(part);
  opened.clear();
  present = 0;
  bool isWhole = true;  // of all files so far
  for (size_t i: kj::indices(files)) {
    auto& file = files[i];
    auto name = pathOf(i);
    int fd = ::open(name.cStr(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) configs::fail("cannot make ", name, ": ", strerror(errno), OTHER_FOLDER);
    opened.add(kj::AutoCloseFd(fd));
    auto size = sizeOf(fd);
    // These bytes belong to another copy. Earlier bytes may too, but the checksum shows that.
    if (!isWhole || size > file.size_bytes) {
      KJ_SYSCALL(::ftruncate(fd, 0), name);
      size = 0;
    }
    present += size;
    isWhole = isWhole && size == file.size_bytes;
  }
}

void DataCopy::append(uint64_t offset, kj::ArrayPtr<const kj::byte> bytes) {
  KJ_REQUIRE(opened.size() == files.size(), "open() it first");
  if (offset != present || bytes.size() > size_bytes() - present) {
    configs::fail(bytes.size(), " bytes at ", offset, " do not follow the ", present, " of ",
        size_bytes(), " that are there");
  }
  auto write = [this](size_t i, uint64_t at, kj::ArrayPtr<const kj::byte> piece) {
    KJ_SYSCALL(::lseek(opened[i], at, SEEK_SET));
    about(pathOf(i), [&]() { writeTo(opened[i], piece); });
    present += piece.size();
    unsynced_bytes += piece.size();
    if (unsynced_bytes < SYNC_BYTES) return;
    about(pathOf(i), [&]() { syncToDisk(opened[i]); });
    unsynced_bytes = 0;
  };
  forEachPiece(files, offset, bytes, write);
}

void DataCopy::finish() {
  KJ_REQUIRE(opened.size() == files.size() && present == size_bytes(), "it is not complete");
  for (size_t i: kj::indices(opened)) about(pathOf(i), [&]() { syncToDisk(opened[i]); });
  std::error_code error;
  // A damaged copy. Processes that read it keep their open files.
  std::filesystem::remove_all(path.cStr(), error);
  moveIntoPlace(part, path);
  if (find() == nullptr) {
    std::filesystem::remove_all(path.cStr(), error);
    configs::fail("the records that were copied to ", path,
        " are not those of the run. Start the run again to copy them again");
  }
}

void DataCopy::clear() {
  KJ_REQUIRE(opened.size() == files.size(), "open() it first");
  for (auto& fd: opened) KJ_SYSCALL(::ftruncate(fd, 0));
  present = 0;
}

}  // namespace io
