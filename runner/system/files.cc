#include "runner/system/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <kj/vector.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <set>

#include "configs/language/failure.h"

namespace runner {

namespace {

[[noreturn]] void failToWrite(kj::StringPtr name, int error, kj::StringPtr wayOut = otherRuns()) {
  kj::String advice;
  if (error == ENOSPC || error == EDQUOT) advice = kj::str("; free some space, or ", wayOut);
  if (error == EACCES || error == EPERM || error == EROFS) {
    advice = kj::str("; make its folder writable, or ", wayOut);
  }
  if (error == EFBIG) {
    rlimit limit;
    bool isLimited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    // This limit applies in every folder.
    advice = isLimited ? kj::str(". Raise the limit on the size of a file (`ulimit -f`), which is ",
                             limit.rlim_cur, " bytes")
                       : kj::str("; its file system does not allow larger files: ", wayOut);
  }
  configs::fail("cannot write ", name, ": ", strerror(error), advice);
}

void writeAll(int fd, kj::ArrayPtr<const kj::byte> bytes, kj::StringPtr name,
    kj::StringPtr wayOut = otherRuns()) {
  int error = runner::writeAll(fd, bytes);
  if (error != 0) failToWrite(name, error, wayOut);
}

[[noreturn]] void failNotRegular(kj::StringPtr path, kj::StringPtr wayOut) {
  configs::fail("cannot write ", path, ": it exists but is not a regular file; ", wayOut);
}

kj::AutoCloseFd openToAppend(kj::StringPtr path) {
  // Opening a FIFO would wait for its reader.
  constexpr int FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
  int fd = ::open(path.cStr(), FLAGS, 0666);
  int error = errno;
  struct stat about;
  bool isThere = ::stat(path.cStr(), &about) == 0;
  if (isThere && !S_ISREG(about.st_mode)) failNotRegular(path, otherRuns());
  if (fd < 0) failToWrite(path, error);
  return kj::AutoCloseFd(fd);
}

constexpr kj::StringPtr TEMPORARY = ".part-"_kj;

// Ends with a slash, or is empty for a path in the current folder.
kj::String folderOf(kj::StringPtr path) {
  KJ_IF_MAYBE(slash, path.findLast('/')) return kj::heapString(path.slice(0, *slash + 1));
  return nullptr;
}

bool isAllDigits(kj::ArrayPtr<const char> text) {
  for (char c: text) {
    if (c < '0' || c > '9') return false;
  }
  return text.size() > 0;
}

// Whether `fd` is the file that `path` names.
bool isNamed(int fd, kj::StringPtr path) {
  struct stat open, named;
  return ::fstat(fd, &open) == 0 && ::stat(path.cStr(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

// A new temporary file for a path, locked.
struct Temporary {
  kj::String name;
  kj::AutoCloseFd fd;  // null if the file could not be made
  int error = 0;       // errno, if the file could not be made
};

Temporary newTemporary(kj::StringPtr path) {
  static std::atomic<kj::uint> made = 0;
  for (;;) {
    Temporary result;
    result.name = kj::str(path, TEMPORARY, ::getpid(), "-", made++);
    int raw = ::open(result.name.cStr(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (raw < 0) {
      // A process on another machine may have the same number.
      if (errno == EEXIST) continue;
      result.error = errno;
      return result;
    }
    result.fd = kj::AutoCloseFd(raw);
    // On a file system without locks, abandoned files stay.
    bool locked = ::flock(raw, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    // Another process may have removed the file as abandoned before we locked it.
    if (locked && isNamed(raw, result.name)) return result;
    ::unlink(result.name.cStr());
  }
}

// Returns those names in the folder `path` that do not begin with a dot and that `isTaken` accepts,
// 2 before 10. Throws if `path` cannot be read.
kj::Array<kj::String> namesIn(
    kj::StringPtr path, kj::FunctionParam<bool(kj::StringPtr name)> isTaken) {
  DIR* dir = ::opendir(path.cStr());
  if (dir == nullptr) configs::fail("cannot read the folder ", path, ": ", strerror(errno));
  KJ_DEFER(::closedir(dir));
  kj::Vector<kj::String> names;
  while (dirent* entry = ::readdir(dir)) {
    kj::StringPtr name = entry->d_name;
    if (!name.startsWith(".") && isTaken(name)) names.add(kj::str(name));
  }
  std::sort(names.begin(), names.end(), [](const kj::String& a, const kj::String& b) {
    return ::strverscmp(a.cStr(), b.cStr()) < 0;
  });
  return names.releaseAsArray();
}

// Names the option of this process's command that chooses another folder for a run.
kj::StringPtr wayToOtherRuns = "choose another folder with --runs"_kj;

// Returns the place of the last newline before `end` in an open file; -1 if there is none.
off_t lastNewline(int fd, kj::StringPtr path, off_t end) {
  constexpr off_t BLOCK_BYTES = 64 << 10;
  char block[BLOCK_BYTES];
  while (end > 0) {
    auto begin = kj::max(off_t(0), end - BLOCK_BYTES);
    // There are fewer bytes if another process has just cut the file.
    ssize_t n = ::pread(fd, block, end - begin, begin);
    if (n < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
    auto found = static_cast<const char*>(::memrchr(block, '\n', n));
    if (found != nullptr) return begin + (found - block);
    end = begin;
  }
  return -1;
}

// Whether write() would not wait now.
bool isWritable(int fd) {
  pollfd writable{fd, POLLOUT, 0};
  return ::poll(&writable, 1, 0) == 1;
}

bool isFilledFile(kj::StringPtr path) {
  struct stat about;
  return ::stat(path.cStr(), &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0;
}

}  // namespace

kj::StringPtr otherRuns() {
  return wayToOtherRuns;
}

void nameFolderOption() {
  wayToOtherRuns = "choose another folder with --folder"_kj;
}

WholeFile::WholeFile(kj::StringPtr path, kj::StringPtr wayOut)
    : path(kj::str(path)), wayOut(wayOut) {
  // The superuser's rename would replace even /dev/null.
  struct stat found;
  if (::stat(this->path.cStr(), &found) == 0 && !S_ISREG(found.st_mode)) {
    failNotRegular(path, wayOut);
  }
  removeAbandoned(path);
  auto made = newTemporary(path);
  if (made.error != 0) failToWrite(path, made.error, wayOut);
  temporary = kj::mv(made.name);
  fd = kj::mv(made.fd);
}

WholeFile::~WholeFile() noexcept {
  if (!finished) ::unlink(temporary.cStr());
}

void WholeFile::append(kj::ArrayPtr<const kj::byte> bytes) {
  writeAll(fd, bytes, path, wayOut);
}

void WholeFile::finish() {
  sync();
  rename();
  syncFolder();
}

void WholeFile::finish(kj::ArrayPtr<kj::Own<WholeFile>> files) {
  for (auto& file: files) file->sync();
  for (auto& file: files) file->rename();
  if (files.size() > 0) files.back()->syncFolder();
}

void WholeFile::sync() {
  if (::fsync(fd) != 0) failToWrite(path, errno, wayOut);
}

void WholeFile::rename() {
  if (::rename(temporary.cStr(), path.cStr()) != 0) failToWrite(path, errno, wayOut);
  finished = true;
}

// So that the new name survives a crash of the machine.
void WholeFile::syncFolder() {
  auto folder = folderOf(path);
  int raw = ::open(folder.size() == 0 ? "." : folder.cStr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (raw < 0) {
    // The folder can be written but not read.
    if (::syncfs(fd) != 0) failToWrite(path, errno, wayOut);
    return;
  }
  kj::AutoCloseFd open(raw);
  // Some network file systems cannot sync a folder.
  if (::fsync(open) != 0 && errno != EINVAL) failToWrite(path, errno, wayOut);
}

void writeWhole(kj::StringPtr path, kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces,
    kj::StringPtr wayOut) {
  WholeFile file(path, wayOut);
  for (auto piece: pieces) file.append(piece);
  file.finish();
}

void writeWhole(kj::StringPtr path, kj::StringPtr text, kj::StringPtr wayOut) {
  auto bytes = text.asBytes();
  writeWhole(path, kj::arrayPtr(&bytes, 1), wayOut);
}

kj::Maybe<kj::String> wholeFileOf(kj::StringPtr path) {
  // Reads `<path>.part-<process>-<number>` from its end.
  KJ_IF_MAYBE(dash, path.findLast('-')) {
    auto front = kj::heapString(path.slice(0, *dash));
    KJ_IF_MAYBE(before, front.findLast('-')) {
      auto whole = kj::heapString(front.slice(0, *before + 1));
      bool isTemporary = isAllDigits(path.slice(*dash + 1)) &&
                         isAllDigits(front.slice(*before + 1)) && whole.endsWith(TEMPORARY);
      if (isTemporary) return kj::heapString(whole.slice(0, whole.size() - TEMPORARY.size()));
    }
  }
  return nullptr;
}

void removeAbandoned(kj::StringPtr path) {
  auto folder = folderOf(path);
  DIR* dir = ::opendir(folder.size() == 0 ? "." : folder.cStr());
  // The folder cannot be read. Writing to it will report what is wrong.
  if (dir == nullptr) return;
  KJ_DEFER(::closedir(dir));
  while (dirent* entry = ::readdir(dir)) {
    auto name = kj::str(folder, entry->d_name);
    KJ_IF_MAYBE(whole, wholeFileOf(name)) {
      if (*whole != path) continue;
      int raw = ::open(name.cStr(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
      if (raw < 0) continue;
      kj::AutoCloseFd fd(raw);
      if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && isNamed(fd, name)) ::unlink(name.cStr());
    }
  }
}

kj::Maybe<kj::String> whyUnwritable(kj::StringPtr path) {
  struct stat found;
  if (::lstat(path.cStr(), &found) == 0 && !S_ISREG(found.st_mode)) {
    return kj::str("exists but is not a regular file");
  }
  auto probe = newTemporary(path);
  if (probe.error != 0) return kj::str(strerror(probe.error));
  ::unlink(probe.name.cStr());
  return nullptr;
}

kj::Maybe<kj::String> beginningOf(kj::StringPtr path, size_t bytes) {
  if (!isFilledFile(path)) return nullptr;
  int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (raw < 0) return kj::String();
  kj::AutoCloseFd fd(raw);
  auto found = kj::heapArray<char>(bytes);
  auto n = ::read(fd, found.begin(), found.size());
  return kj::heapString(found.begin(), kj::max(n, ssize_t(0)));
}

bool isForeignFile(kj::StringPtr path, kj::StringPtr begin) {
  return beginningOf(path, begin.size())
      .map([&](auto& found) { return found != begin; })
      .orDefault(false);
}

int writeAll(int fd, kj::ArrayPtr<const kj::byte> bytes, bool (*givesUp)()) {
  while (bytes.size() > 0) {
    if (givesUp != nullptr && givesUp() && !isWritable(fd)) return EINTR;
    ssize_t n = ::write(fd, bytes.begin(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      // Standard output may be a pipe that its other end has made non-blocking.
      pollfd writable{fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
      continue;
    }
    if (n < 0) return errno;
    bytes = bytes.slice(n, bytes.size());
  }
  return 0;
}

kj::String readWhole(kj::StringPtr path, uint64_t bytesMax) {
  int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (raw < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
  kj::AutoCloseFd fd(raw);
  return readWhole(fd, path, bytesMax);
}

kj::String readRegular(kj::StringPtr path, uint64_t bytesMax) {
  struct stat about;
  if (::stat(path.cStr(), &about) == 0 && !S_ISREG(about.st_mode)) {
    configs::fail("cannot read ", path, ": it is ",
        S_ISDIR(about.st_mode) ? "a directory" : "not a regular file");
  }
  return readWhole(path, bytesMax);
}

kj::String readWhole(int fd, kj::StringPtr name, uint64_t bytesMax) {
  // A pipe does not say how many bytes will come.
  constexpr size_t STEP_BYTES = 1 << 14;
  kj::Vector<char> text;
  for (;;) {
    size_t size = text.size();
    text.resize(size + STEP_BYTES);
    ssize_t n;
    do {
      n = ::read(fd, text.begin() + size, STEP_BYTES);
    } while (n < 0 && errno == EINTR);
    if (n < 0) configs::fail("cannot read ", name, ": ", strerror(errno));
    text.resize(size + n);
    if (n == 0) break;
    if (text.size() > bytesMax) {
      configs::fail(name, " is longer than ", bytesMax, " bytes: is it the right file?");
    }
  }
  text.add('\0');
  return kj::String(text.releaseAsArray());
}

kj::String lastLineOf(kj::StringPtr path) {
  constexpr off_t LINE_BYTES_MAX = 64 << 20;
  // Opening a FIFO would wait for its writer.
  int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (raw < 0 && errno == ENOENT) return nullptr;
  if (raw < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
  kj::AutoCloseFd fd(raw);
  auto end = lastNewline(fd, path, ::lseek(fd, 0, SEEK_END));
  if (end <= 0) return nullptr;
  auto begin = lastNewline(fd, path, end) + 1;
  if (end - begin > LINE_BYTES_MAX) {
    configs::fail("the last line of ", path, " is longer than ", LINE_BYTES_MAX,
        " bytes: is it the right file?");
  }
  auto line = kj::heapString(end - begin);
  ssize_t n = ::pread(fd, line.begin(), line.size(), begin);
  if (n < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
  // There are fewer bytes if another process has just cut the file.
  return size_t(n) == line.size() ? kj::mv(line) : kj::String();
}

void syncPath(kj::StringPtr path) {
  int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (raw < 0 && errno == ENOENT) return;
  if (raw < 0) failToWrite(path, errno, otherRuns());
  kj::AutoCloseFd fd(raw);
  // Some network file systems cannot sync a folder.
  if (::fsync(fd) != 0 && errno != EINVAL) failToWrite(path, errno, otherRuns());
}

void writeAgain(kj::StringPtr path, uint64_t from) {
  int raw = ::open(path.cStr(), O_RDWR | O_CLOEXEC);
  if (raw < 0) failToWrite(path, errno);
  kj::AutoCloseFd fd(raw);
  if (::lseek(fd, from, SEEK_SET) < 0) failToWrite(path, errno);
  auto chunk = kj::heapArray<kj::byte>(1 << 20);
  for (;;) {
    ssize_t count = ::pread(fd, chunk.begin(), chunk.size(), from);
    if (count < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
    if (count == 0) return;
    writeAll(fd, chunk.slice(0, count), path);
    from += count;
  }
}

void cutFile(kj::StringPtr path, uint64_t bytes) {
  struct stat facts;
  if (::stat(path.cStr(), &facts) == 0 && uint64_t(facts.st_size) < bytes) {
    configs::fail(path, " is shorter than it was: it has ", facts.st_size, " of ", bytes, " bytes");
  }
  if (::truncate(path.cStr(), bytes) != 0) failToWrite(path, errno);
}

void removeTornLine(kj::StringPtr path) {
  int raw = ::open(path.cStr(), O_RDWR | O_CLOEXEC);
  if (raw < 0 && errno == ENOENT) return;
  if (raw < 0) failToWrite(path, errno);
  kj::AutoCloseFd fd(raw);
  off_t size = ::lseek(fd, 0, SEEK_END);
  if (size < 0) failToWrite(path, errno);
  off_t whole = lastNewline(fd, path, size) + 1;
  if (whole < size && ::ftruncate(fd, whole) != 0) failToWrite(path, errno);
}

LineFile::LineFile(kj::StringPtr path): name(kj::str(path)), fd(openToAppend(path)) {}

kj::Maybe<LineFile> LineFile::create(kj::StringPtr path) {
  int fd = ::open(path.cStr(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (fd >= 0) return LineFile(kj::AutoCloseFd(fd), path);
  if (errno != EEXIST) failToWrite(path, errno);
  return nullptr;
}

LineFile::LineFile(kj::AutoCloseFd fd, kj::StringPtr name): name(kj::str(name)), fd(kj::mv(fd)) {}

void LineFile::append(kj::StringPtr line) {
  auto text = kj::str(line, '\n');
  appendWhole(text.asBytes());
}

void LineFile::appendWhole(kj::ArrayPtr<const kj::byte> record) {
  auto before = bytes();
  int error = runner::writeAll(fd, record);
  if (error == 0) return;
  // Otherwise the next record would stand behind a part of this one. A pipe cannot be cut.
  (void)!::ftruncate(fd, before);
  failToWrite(name, error);
}

uint64_t LineFile::bytes() const {
  struct stat facts;
  if (::fstat(fd, &facts) != 0) configs::fail("cannot read ", name, ": ", strerror(errno));
  return facts.st_size;
}

bool LineFile::isInPlace() const {
  return isNamed(fd, name);
}

bool isFolder(kj::StringPtr path) {
  struct stat about;
  return ::lstat(path.cStr(), &about) == 0 && S_ISDIR(about.st_mode);
}

kj::Array<kj::String> foldersIn(kj::StringPtr path) {
  return namesIn(path, [&](kj::StringPtr name) { return isFolder(kj::str(path, "/", name)); });
}

kj::Maybe<std::pair<dev_t, ino_t>> folderIdentity(kj::StringPtr path) {
  struct stat about;
  if (::stat(path.cStr(), &about) != 0 || !S_ISDIR(about.st_mode)) return nullptr;
  return std::make_pair(about.st_dev, about.st_ino);
}

kj::Array<FoundFolder> foldersAndLinksIn(kj::StringPtr path) {
  auto pathOf = [&](kj::StringPtr name) { return kj::str(path, "/", name); };
  auto names = namesIn(path, [&](kj::StringPtr name) {
    struct stat about;
    bool isKnown = ::lstat(pathOf(name).cStr(), &about) == 0;
    return isKnown && (S_ISDIR(about.st_mode) || S_ISLNK(about.st_mode));
  });
  std::set<std::pair<dev_t, ino_t>> known;
  for (auto& name: names) {
    if (!isFolder(pathOf(name))) continue;
    KJ_IF_MAYBE(identity, folderIdentity(pathOf(name))) known.insert(*identity);
  }
  kj::Vector<FoundFolder> found;
  for (auto& name: names) {
    auto below = pathOf(name);
    KJ_IF_MAYBE(identity, folderIdentity(below)) {
      bool isNew = isFolder(below) || known.insert(*identity).second;
      if (isNew) found.add(FoundFolder{kj::mv(name), *identity});
    }
  }
  return found.releaseAsArray();
}

}  // namespace runner
