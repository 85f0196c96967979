#include "io/archives.h"

#include <archive.h>
#include <archive_entry.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <sys/stat.h>

#include <cstring>

#include "configs/language/failure.h"
#include "io/paths.h"

namespace io {

namespace {

// What libarchive asks of the disk at a time: large enough that a network disk is not slow.
constexpr size_t BLOCK_BYTES = size_t(1) << 20;

[[noreturn]] void tooLarge(kj::StringPtr path, size_t sizeMax) {
  configs::fail(path, " is refused: it has more than the ", sizeMax, " bytes that are read");
}

// An archive open for reading; `raw` takes any compressed file as an archive of one.
class Archive {
public:
  enum class Content { MEMBERS, RAW };

  Archive(kj::StringPtr path, Content content): path(kj::str(path)), handle(archive_read_new()) {
    KJ_REQUIRE(handle != nullptr, "libarchive cannot start");
    archive_read_support_filter_all(handle);
    if (content == Content::RAW) {
      archive_read_support_format_raw(handle);
      // Otherwise an empty file is an error.
      archive_read_support_format_empty(handle);
    } else {
      archive_read_support_format_all(handle);
    }
    if (archive_read_open_filename(handle, path.cStr(), BLOCK_BYTES) != ARCHIVE_OK) {
      auto cause = kj::str(archive_error_string(handle));
      archive_read_free(handle);
      configs::fail(
          "cannot open ", path, ": ", cause, "; name a folder, or an archive that can be read");
    }
  }
  ~Archive() noexcept(false) { archive_read_free(handle); }
  KJ_DISALLOW_COPY(Archive);

  // The next member's header, of whatever type.
  kj::Maybe<archive_entry*> next() {
    archive_entry* entry = nullptr;
    int result = archive_read_next_header(handle, &entry);
    if (result == ARCHIVE_EOF) return nullptr;
    // A warning is about an attribute we do not use (a character set, an owner).
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) failed();
    return entry;
  }

  kj::Array<kj::byte> read(kj::StringPtr name, int64_t sizeHint, size_t sizeMax) {
    auto refuse = [&]() {
      tooLarge(name == path ? kj::str(path) : kj::str(name, " of ", path), sizeMax);
    };
    if (sizeHint > 0 && uint64_t(sizeHint) > sizeMax) refuse();
    kj::Vector<kj::byte> bytes(kj::max(sizeHint, int64_t(0)));
    auto buffer = kj::heapArray<kj::byte>(BLOCK_BYTES);
    for (;;) {
      auto n = archive_read_data(handle, buffer.begin(), buffer.size());
      if (n < 0) failed();
      if (n == 0) return bytes.releaseAsArray();
      if (bytes.size() + n > sizeMax) refuse();
      bytes.addAll(buffer.begin(), buffer.begin() + n);
    }
  }

  // Bytes of the file read so far.
  uint64_t done() const { return archive_filter_bytes(handle, -1); }

private:
  [[noreturn]] void failed() {
    auto cause = archive_error_string(handle);
    configs::fail("cannot read ", path, ": ", cause == nullptr ? "it is damaged" : cause,
        "; is the file whole? get it again");
  }

  kj::String path;
  struct archive* handle;
};

class ArchiveMembers final: public Members {
public:
  explicit ArchiveMembers(kj::StringPtr path): archive(path, Archive::Content::MEMBERS) {
    struct stat status;
    if (::stat(path.cStr(), &status) == 0) bytes = status.st_size;
  }

  kj::Maybe<kj::StringPtr> next() override {
    for (;;) {
      KJ_IF_MAYBE(found, archive.next()) {
        entry = *found;
        if (archive_entry_filetype(entry) != AE_IFREG) continue;
        auto path = archive_entry_pathname(entry);
        if (path == nullptr) path = archive_entry_pathname_utf8(entry);
        if (path == nullptr) continue;
        while (strncmp(path, "./", 2) == 0) path += 2;
        name = kj::str(path);
        return kj::StringPtr(name);
      } else {
        return nullptr;
      }
    }
  }

  kj::Array<kj::byte> read(size_t sizeMax) override {
    return archive.read(
        name, archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0, sizeMax);
  }

  uint64_t done() const override { return archive.done(); }
  uint64_t total() const override { return bytes; }

private:
  Archive archive;
  archive_entry* entry = nullptr;
  kj::String name;
  uint64_t bytes = 0;
};

class FolderMembers final: public Members {
public:
  explicit FolderMembers(kj::StringPtr path): folder(kj::str(path)), names(filesBelow(path)) {}

  kj::Maybe<kj::StringPtr> next() override {
    if (position == names.size()) return nullptr;
    return kj::StringPtr(names[position++]);
  }
  kj::Array<kj::byte> read(size_t sizeMax) override {
    return readFile(kj::str(folder, "/", names[position - 1]), sizeMax);
  }
  uint64_t done() const override { return position; }
  uint64_t total() const override { return names.size(); }

private:
  kj::String folder;
  kj::Array<kj::String> names;
  size_t position = 0;
};

}  // namespace

kj::Own<Members> Members::open(kj::StringPtr path) {
  switch (pathKind(path)) {
    case PathKind::FOLDER:
      return kj::heap<FolderMembers>(path);
    case PathKind::FILE:
      return kj::heap<ArchiveMembers>(path);
    case PathKind::NOTHING:
      break;
  }
  configs::fail("there is no folder or archive at ", path);
}

kj::Array<kj::byte> readUnpacked(kj::StringPtr path, size_t sizeMax) {
  Archive archive(path, Archive::Content::RAW);
  if (archive.next() == nullptr) return nullptr;
  return archive.read(path, 0, sizeMax);
}

}  // namespace io
