#include "runner/files.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/language/failure.h"

namespace runner {

namespace {

constexpr kj::StringPtr OTHER_RUNS = "choose another folder with --runs"_kj;

[[noreturn]] void failToWrite(kj::StringPtr name, int error, kj::StringPtr wayOut = OTHER_RUNS) {
  bool isFull = error == ENOSPC || error == EDQUOT || error == EFBIG;
  configs::fail("cannot write ", name, ": ", strerror(error),
      isFull ? kj::str("; free some space, or ", wayOut) : kj::str());
}

void writeAll(int fd, kj::ArrayPtr<const kj::byte> bytes, kj::StringPtr name,
    kj::StringPtr wayOut = OTHER_RUNS) {
  while (bytes.size() > 0) {
    ssize_t n = ::write(fd, bytes.begin(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) failToWrite(name, errno, wayOut);
    bytes = bytes.slice(n, bytes.size());
  }
}

kj::AutoCloseFd openToWrite(kj::StringPtr path, int flags, kj::StringPtr wayOut = OTHER_RUNS) {
  int fd = ::open(path.cStr(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) failToWrite(path, errno, wayOut);
  return kj::AutoCloseFd(fd);
}

kj::String temporaryFor(kj::StringPtr path) {
  return kj::str(path, ".part");
}

}  // namespace

WholeFile::WholeFile(kj::StringPtr path, kj::StringPtr wayOut)
    : path(kj::str(path)),
      temporary(temporaryFor(path)),
      wayOut(wayOut),
      fd(openToWrite(temporary, O_TRUNC, wayOut)) {}

WholeFile::~WholeFile() noexcept {
  if (!finished) ::unlink(temporary.cStr());
}

void WholeFile::append(kj::ArrayPtr<const kj::byte> bytes) {
  writeAll(fd, bytes, path, wayOut);
}

void WholeFile::finish() {
  if (::fsync(fd) != 0) failToWrite(path, errno, wayOut);
  if (::rename(temporary.cStr(), path.cStr()) != 0) failToWrite(path, errno, wayOut);
  finished = true;
}

void writeWhole(kj::StringPtr path, kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) {
  WholeFile file(path);
  for (auto piece: pieces) file.append(piece);
  file.finish();
}

void writeWhole(kj::StringPtr path, kj::StringPtr text) {
  auto bytes = text.asBytes();
  writeWhole(path, kj::arrayPtr(&bytes, 1));
}

kj::Maybe<kj::String> whyUnwritable(kj::StringPtr path) {
  struct stat found;
  if (::lstat(path.cStr(), &found) == 0 && !S_ISREG(found.st_mode)) {
    return kj::str("it is there, and no regular file");
  }
  auto temporary = temporaryFor(path);
  int fd = ::open(temporary.cStr(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    if (errno == EEXIST) return nullptr;
    return kj::str(strerror(errno));
  }
  kj::AutoCloseFd probe(fd);
  ::unlink(temporary.cStr());
  return nullptr;
}

void writeQuietly(int fd, kj::StringPtr text) {
  while (text.size() > 0) {
    ssize_t n = ::write(fd, text.begin(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text = text.slice(n);
  }
}

kj::String readWhole(kj::StringPtr path, uint64_t bytesMax) {
  int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (raw < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
  kj::AutoCloseFd fd(raw);
  return readWhole(fd, path, bytesMax);
}

kj::String readWhole(int fd, kj::StringPtr name, uint64_t bytesMax) {
  // A pipe does not tell how much will come.
  constexpr size_t STEP_BYTES = 1 << 20;
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

LineFile::LineFile(kj::StringPtr path): name(kj::str(path)), fd(openToWrite(path, O_APPEND)) {}

LineFile::LineFile(kj::AutoCloseFd fd, kj::StringPtr name): name(kj::str(name)), fd(kj::mv(fd)) {}

void LineFile::append(kj::StringPtr line) {
  auto text = kj::str(line, '\n');
  writeAll(fd, text.asBytes(), name);
}

void LineFile::appendWhole(kj::ArrayPtr<const kj::byte> record) {
  writeAll(fd, record, name);
}

}  // namespace runner
