#include "io/datasets/archive_end.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <kj/array.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <kj/io.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "configs/language/failure.h"

namespace io {

namespace {

constexpr size_t BLOCK_BYTES = size_t(1) << 20;
// A tar ends in two blocks of zeros. Some programs write only one.
constexpr uint64_t END_MARK_BYTES = 512;

[[noreturn]] void refuse(kj::StringPtr path, kj::StringPtr cause) {
  configs::fail("cannot read ", path, ": ", cause, ". The file may be incomplete: get it again");
}

// Checks the end of a tar. It takes all unpacked bytes of the tar, from the first one.
class TarEnd {
public:
  // `end` is where the end mark begins. Messages print `ofWhat` after such numbers.
  TarEnd(kj::StringPtr path, uint64_t end, kj::StringPtr ofWhat)
      : path(path), end(end), ofWhat(ofWhat) {}

  // Takes the next `bytes`. Bytes before the end mark are not checked.
  void add(kj::ArrayPtr<const kj::byte> bytes) {
    for (uint64_t i = at < end ? kj::min(end - at, uint64_t(bytes.size())) : 0; i < bytes.size();
         ++i) {
      if (bytes[i] == 0) continue;
      configs::fail("cannot read ", path, ": its end mark is at byte ", end, ofWhat,
          ", but there is more data at byte ", at + i,
          ". If it consists of several archives, unpack it with `tar --ignore-zeros -xf` and name "
          "the folder. Otherwise it is damaged: get it again");
    }
    at += bytes.size();
  }
  void skip(uint64_t bytes) { at += bytes; }
  void finish() {
    if (at < end + END_MARK_BYTES) refuse(path, "the archive ends early: it has no end mark");
  }

private:
  kj::StringPtr path;
  uint64_t end;
  kj::StringPtr ofWhat;
  uint64_t at = 0;
};

using Take = kj::FunctionParam<void(kj::ArrayPtr<const kj::byte>)>;

// Passes all unpacked bytes of a gzip file to `take`. zlib checks the checksum.
void unpackGzip(kj::StringPtr path, Take take) {
  auto file = ::gzopen(path.cStr(), "rb");
  if (file == nullptr) refuse(path, strerror(errno));
  KJ_DEFER(::gzclose(file));
  auto buffer = kj::heapArray<kj::byte>(BLOCK_BYTES);
  for (;;) {
    int n = ::gzread(file, buffer.begin(), buffer.size());
    int error = Z_OK;
    auto words = ::gzerror(file, &error);
    // Z_BUF_ERROR: the file ends early.
    if (n < 0 || error != Z_OK) {
      kj::StringPtr cause = error == Z_ERRNO ? strerror(errno) : words;
      // zlib puts the path before its message.
      auto begin = kj::str(path, ": ");
      refuse(path, cause.startsWith(begin) ? cause.slice(begin.size()) : cause);
    }
    if (n == 0) return;
    take(buffer.slice(0, n).asConst());
  }
}

// Adds libarchive's reason, if it has one.
[[noreturn]] void refuse(kj::StringPtr path, archive* handle) {
  auto reason = archive_error_string(handle);
  refuse(path, reason == nullptr ? "it cannot be unpacked"_kj : kj::StringPtr(reason));
}

// Passes all unpacked bytes of a file with another kind of compression to `take`.
void unpack(kj::StringPtr path, Take take) {
  auto handle = archive_read_new();
  KJ_REQUIRE(handle != nullptr, "libarchive cannot start");
  KJ_DEFER(archive_read_free(handle));
  archive_read_support_filter_all(handle);
  archive_read_support_format_raw(handle);
  archive_entry* entry = nullptr;
  if (archive_read_open_filename(handle, path.cStr(), BLOCK_BYTES) != ARCHIVE_OK ||
      archive_read_next_header(handle, &entry) != ARCHIVE_OK) {
    refuse(path, handle);
  }
  auto buffer = kj::heapArray<kj::byte>(BLOCK_BYTES);
  for (;;) {
    auto n = archive_read_data(handle, buffer.begin(), buffer.size());
    if (n < 0) refuse(path, handle);
    if (n == 0) return;
    take(buffer.slice(0, n).asConst());
  }
}

// For a tar without compression. Reads only its end.
void readFrom(kj::StringPtr path, int fd, uint64_t from, Take take) {
  auto buffer = kj::heapArray<kj::byte>(BLOCK_BYTES);
  for (;;) {
    auto n = ::pread(fd, buffer.begin(), buffer.size(), from);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(path, strerror(errno));
    if (n == 0) return;
    from += n;
    take(buffer.slice(0, n).asConst());
  }
}

}  // namespace

void checkEnd(kj::StringPtr path, kj::Maybe<uint64_t> tarEnd, bool isPacked) {
  int fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) refuse(path, strerror(errno));
  kj::AutoCloseFd owned(fd);
  kj::byte magic[2] = {};
  bool isGzip = ::pread(fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  KJ_IF_MAYBE(end, tarEnd) {
    TarEnd rest(path, *end, isPacked ? " of the unpacked archive" : "");
    auto take = [&](kj::ArrayPtr<const kj::byte> bytes) { rest.add(bytes); };
    if (isGzip) {
      unpackGzip(path, take);
    } else if (isPacked) {
      unpack(path, take);
    } else {
      rest.skip(*end);
      readFrom(path, fd, *end, take);
    }
    rest.finish();
  } else if (isGzip) {
    unpackGzip(path, [](kj::ArrayPtr<const kj::byte>) {});
  }
}

}  // namespace io
