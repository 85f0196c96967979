#include "io/datasets/name_forms.h"

#include <archive_entry.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/vector.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "configs/language/failure.h"
#include "configs/language/printable.h"
#include "configs/language/utf8_locale.h"

namespace io {

namespace {

bool isAscii(kj::StringPtr text) {
  for (unsigned char c: text) {
    if (c >= 0x80) return false;
  }
  return true;
}

// Returns `size` bytes of the open file from `offset` on. Null if the file has fewer.
kj::Maybe<kj::Array<kj::byte>> bytesAt(int fd, uint64_t offset, uint64_t size) {
  struct stat status;
  bool has = ::fstat(fd, &status) == 0 && offset <= uint64_t(status.st_size) &&
             size <= uint64_t(status.st_size) - offset;
  if (!has) return nullptr;
  auto bytes = kj::heapArray<kj::byte>(size);
  for (size_t done = 0; done < size;) {
    auto n = ::pread(fd, bytes.begin() + done, size - done, offset + done);
    if (n <= 0) return nullptr;
    done += n;
  }
  return kj::mv(bytes);
}

// Returns the little-endian number in `size` bytes.
uint64_t numberAt(kj::ArrayPtr<const kj::byte> bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = size; i-- > 0;) number = number << 8 | bytes[at + i];
  return number;
}

// Whether a record at `at` begins with `PK` and these two bytes, and has at least `size` bytes.
bool isAt(
    kj::ArrayPtr<const kj::byte> bytes, size_t at, kj::byte first, kj::byte second, size_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return false;
  const kj::byte signature[] = {'P', 'K', first, second};
  return memcmp(bytes.begin() + at, signature, sizeof(signature)) == 0;
}

constexpr size_t END_BYTES = 22;
constexpr size_t LOCATOR_BYTES = 20;
constexpr size_t END64_BYTES = 56;
constexpr size_t ENTRY_BYTES = 46;
constexpr size_t COMMENT_BYTES_MAX = 65535;
// Of twenty million names. A damaged zip may claim that its directory is as large as the file.
constexpr uint64_t DIRECTORY_BYTES_MAX = uint64_t(4) << 30;

// Returns the central directory, which ends just before the record that ends the zip.
kj::Maybe<kj::Array<kj::byte>> directoryOf(int fd) {
  struct stat status;
  if (::fstat(fd, &status) != 0 || uint64_t(status.st_size) < END_BYTES) return nullptr;
  uint64_t size = status.st_size;
  auto tail_bytes = std::min(size, END_BYTES + COMMENT_BYTES_MAX + LOCATOR_BYTES);
  KJ_IF_MAYBE(tail, bytesAt(fd, size - tail_bytes, tail_bytes)) {
    for (size_t at = tail_bytes - END_BYTES + 1; at-- > 0;) {
      if (!isAt(*tail, at, 5, 6, END_BYTES)) continue;
      uint64_t end = size - tail_bytes + at;
      uint64_t directory_bytes = numberAt(*tail, at + 12, 4);
      if (at >= LOCATOR_BYTES && isAt(*tail, at - LOCATOR_BYTES, 6, 7, LOCATOR_BYTES)) {
        end = numberAt(*tail, at - LOCATOR_BYTES + 8, 8);
        KJ_IF_MAYBE(end64, bytesAt(fd, end, END64_BYTES)) {
          directory_bytes = numberAt(*end64, 40, 8);
        }
      }
      if (directory_bytes > std::min(end, DIRECTORY_BYTES_MAX)) return nullptr;
      return bytesAt(fd, end - directory_bytes, directory_bytes);
    }
  }
  return nullptr;
}

}  // namespace

kj::String composed(kj::StringPtr name) {
  if (isAscii(name)) return kj::str(name);
  static const configs::Utf8Locale UTF8;
  configs::Utf8Locale::Scope scope(UTF8);
  auto entry = archive_entry_new();
  KJ_DEFER(archive_entry_free(entry));
  archive_entry_set_pathname_utf8(entry, name.cStr());
  auto result = archive_entry_pathname(entry);
  return result == nullptr ? kj::str(name) : kj::str(result);
}

void NameForms::add(kj::StringPtr path, kj::StringPtr written) {
  if (isAscii(written)) return;
  auto endOfPart = [](kj::StringPtr text, size_t begin) {
    return size_t(std::find(text.begin() + begin, text.end(), '/') - text.begin());
  };
  for (size_t end = 0, writtenEnd = 0;; ++end, ++writtenEnd) {
    end = endOfPart(path, end);
    writtenEnd = endOfPart(written, writtenEnd);
    auto part = kj::heapString(path.slice(0, end));
    auto writtenPart = kj::heapString(written.slice(0, writtenEnd));
    bool isWhole = end == path.size();
    KJ_IF_MAYBE(other, writtenOf.find(part)) {
      if (*other != writtenPart) {
        configs::fail(archive, " has two ", isWhole ? "files" : "folders", " that are called ",
            configs::printable(part),
            ", whose names are written in different forms of Unicode (NFC and NFD): rename "
            "one of them and pack them again, or unpack the archive and name the folder");
      }
    } else {
      writtenOf.insert(kj::mv(part), kj::mv(writtenPart));
    }
    if (isWhole || writtenEnd == written.size()) return;
  }
}

kj::Array<ZipName> namesOfZip(kj::StringPtr path) {
  int fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  kj::AutoCloseFd owned(fd);
  kj::Vector<ZipName> names;
  KJ_IF_MAYBE(directory, directoryOf(fd)) {
    for (size_t at = 0; isAt(*directory, at, 1, 2, ENTRY_BYTES);) {
      constexpr uint64_t UTF8_FLAG = 0x800;
      bool isUtf8 = (numberAt(*directory, at + 8, 2) & UTF8_FLAG) != 0;
      size_t name_bytes = numberAt(*directory, at + 28, 2);
      size_t others_bytes = numberAt(*directory, at + 30, 2) + numberAt(*directory, at + 32, 2);
      at += ENTRY_BYTES;
      if (name_bytes > directory->size() - at) break;
      names.add(ZipName{kj::heapString(directory->slice(at, at + name_bytes).asChars()), isUtf8});
      at += name_bytes + others_bytes;
    }
  }
  return names.releaseAsArray();
}

}  // namespace io
