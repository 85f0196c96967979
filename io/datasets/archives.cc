#include "io/datasets/archives.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/map.h>
#include <kj/vector.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "configs/language/failure.h"
#include "configs/language/utf8_locale.h"
#include "io/datasets/archive_end.h"
#include "io/datasets/name_forms.h"
#include "io/datasets/record_io.h"
#include "io/paths.h"

namespace io {

namespace {

// How many bytes libarchive reads at a time: enough for good speed on a network disk.
constexpr size_t BLOCK_BYTES = size_t(1) << 20;

constexpr kj::StringPtr GET_AGAIN = "The file may be incomplete: get it again"_kj;

// An entry of an archive.
struct ArchiveEntry {
  unsigned type;               // AE_IFREG, …; 0 if the archive does not say
  kj::Maybe<kj::String> name;  // null if it cannot be read
  kj::String written;          // in a tar: the bytes of the name in the archive
  // of a hard link without separate content: the file that it links to
  kj::Maybe<kj::String> target;
  int64_t size;  // 0: unknown
};

// An archive that is open for reading.
class Archive {
public:
  // A tar, an archive of any format, or any compressed file, as an archive of one file.
  enum class Content { TAR, MEMBERS, RAW };

  // `wayOut` is the advice about a damaged file. It ends the messages.
  Archive(kj::StringPtr path, Content content, kj::StringPtr wayOut = GET_AGAIN)
      : path(kj::str(path)), content(content), wayOut(kj::str(wayOut)), handle(archive_read_new()) {
    KJ_REQUIRE(handle != nullptr, "libarchive cannot start");
    archive_read_support_filter_all(handle);
    if (content == Content::RAW) {
      archive_read_support_format_raw(handle);
      // Without this call, an empty file is an error.
      archive_read_support_format_empty(handle);
    } else if (content == Content::TAR) {
      archive_read_support_format_tar(handle);
    } else {
      archive_read_support_format_all(handle);
    }
    KJ_ON_SCOPE_FAILURE(archive_read_free(handle));
    // If libarchive opened the file, it would not report the reason of a failure.
    // Opening a FIFO would wait for its writer.
    int fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) configs::fail("cannot open ", path, ": ", strerror(errno));
    file = kj::AutoCloseFd(fd);
    struct stat about;
    KJ_SYSCALL(::fstat(fd, &about), path);
    if (!S_ISREG(about.st_mode)) configs::fail("cannot open ", path, ": it is not a regular file");
    if (archive_read_open_fd(handle, file, BLOCK_BYTES) != ARCHIVE_OK) {
      // A compressed file may have any name.
      bool isDamaged = content == Content::RAW || isNamedAsArchive(path);
      configs::fail("cannot open ", path, ": ", cause(), ". ",
          isDamaged ? wayOut : "Name a folder, or an archive that can be read"_kj);
    }
  }
  ~Archive() noexcept(false) { archive_read_free(handle); }
  KJ_DISALLOW_COPY(Archive);

  // Returns the next entry, of any type.
  kj::Maybe<ArchiveEntry> next() {
    // For most formats, libarchive returns names with characters beyond ASCII only in this locale.
    // A name in a tar is then returned as written, with a warning if it should be UTF-8.
    bool isTar = content == Content::TAR;
    kj::Maybe<configs::Utf8Locale::Scope> scope;
    if (!isTar) scope.emplace(utf8);
    archive_entry* entry = nullptr;
    int result = archive_read_next_header(handle, &entry);
    if (result == ARCHIVE_EOF) {
      if (!checked && content != Content::RAW) checkWhole();
      return nullptr;
    }
    // A warning is about an attribute: about the name, which is null then, or about one that we do
    // not use.
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) {
      configs::fail("cannot read ", path, ": ", cause(), ". ", wayOut);
    }
    isEncrypted = archive_entry_is_data_encrypted(entry) != 0;
    auto size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;
    auto nameOf = [&](const char* text) -> kj::Maybe<kj::String> {
      if (text == nullptr) return nullptr;
      auto name = withoutDot(text);
      return isTar && result == ARCHIVE_WARN ? composed(name) : kj::str(name);
    };
    auto written = archive_entry_pathname(entry);
    auto target = nameOf(archive_entry_hardlink(entry));
    // Some formats keep the content with the link.
    if (size > 0) target = nullptr;
    return ArchiveEntry{target == nullptr && archive_entry_hardlink(entry) != nullptr
                            ? unsigned(AE_IFREG)
                            : unsigned(archive_entry_filetype(entry)),
        nameOf(written), kj::str(isTar && written != nullptr ? withoutDot(written) : ""_kj),
        kj::mv(target), size};
  }

  // The texts of its exceptions begin with a verb.
  kj::Array<kj::byte> read(int64_t sizeHint, size_t bytesMax) {
    auto refuse = [&]() { configs::fail("has more than the allowed ", bytesMax, " bytes"); };
    if (isEncrypted) configs::fail("is encrypted: unpack the archive with its password");
    if (sizeHint > 0 && uint64_t(sizeHint) > bytesMax) refuse();
    // A damaged archive may claim any size. Memory beyond one block is taken as the bytes arrive.
    kj::Vector<kj::byte> bytes(kj::max(int64_t(0), kj::min(sizeHint, int64_t(BLOCK_BYTES))));
    kj::byte more[1024];
    for (;;) {
      size_t before = bytes.size();
      bool isFull = before == bytes.capacity();
      if (!isFull) bytes.resize(bytes.capacity());
      auto n = isFull ? archive_read_data(handle, more, sizeof(more))
                      : archive_read_data(handle, &bytes[before], bytes.size() - before);
      if (n < 0) configs::fail("cannot be read: ", cause(), ". ", wayOut);
      if (!isFull) bytes.resize(before + n);
      if (n == 0) return bytes.releaseAsArray();
      if (before + n > bytesMax) refuse();
      if (isFull) bytes.addAll(more, more + n);
    }
  }

  // Returns how many bytes of the file were read so far.
  uint64_t done() const { return archive_filter_bytes(handle, -1); }

private:
  kj::StringPtr cause() const {
    auto words = archive_error_string(handle);
    return words == nullptr ? "it is damaged" : words;
  }

  // libarchive accepts a tar that stops between two entries, and does not check the checksum of a
  // gzip file.
  void checkWhole() {
    kj::Maybe<uint64_t> tarEnd;
    bool isTar = (archive_format(handle) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    if (isTar) tarEnd = uint64_t(archive_read_header_position(handle));
    checkEnd(path, tarEnd, archive_filter_count(handle) > 1);
    checked = true;
  }

  kj::String path;
  Content content;
  kj::String wayOut;
  bool checked = false;
  bool isEncrypted = false;  // the entry
  kj::AutoCloseFd file;
  struct archive* handle;
  // Without a UTF-8 locale on the machine, names beyond ASCII are `unreadable()` in most formats.
  configs::Utf8Locale utf8;
};

// Whether the file at `path` begins like a tar, compressed or not.
bool isTar(kj::StringPtr path) {
  bool hasEntry = false;
  // An error is found and reported later, when the file is read as an archive of any kind.
  kj::runCatchingExceptions([&]() {
    Archive archive(path, Archive::Content::TAR);
    hasEntry = archive.next() != nullptr;
  });
  return hasEntry;
}

// The hard links of an archive, and files that follow a link of the same name. Entries are counted
// from 1. As for tar, a link has the content of the last entry before it that has the name of its
// target.
class HardLinks {
public:
  // Adds the file `name`. Returns false if an earlier link has this name: take() then returns the
  // file.
  bool addFile(kj::StringPtr name, uint64_t position) {
    auto& last = lastOf(name);
    last.position = position;
    if (last.followsLink) names.add(kj::str(name));
    return !last.followsLink;
  }

  void addLink(kj::StringPtr name, kj::String target) {
    uint64_t position = 0;
    KJ_IF_MAYBE(file, lasts.find(target)) position = file->position;
    lastOf(name) = {position, true};
    names.add(kj::str(name));
    if (position > 0) return;
    lostTargets.upsert(kj::str(name), kj::mv(target),
        [](kj::String& earlier, kj::String&& later) { earlier = kj::mv(later); });
  }

  bool empty() const { return names.size() == 0; }

  // Returns the names whose last content is that of the entry at `position`. 0: links without a
  // file. To be called after the last entry was added, once per position.
  kj::Array<kj::String> take(uint64_t position) {
    if (!grouped) group();
    KJ_IF_MAYBE(found, byPosition.find(position)) return found->releaseAsArray();
    return nullptr;
  }

  // Returns the target of a link without a file.
  kj::StringPtr lostTargetOf(kj::StringPtr name) const {
    return KJ_ASSERT_NONNULL(lostTargets.find(name));
  }

private:
  // The last entry of a name.
  struct Last {
    uint64_t position = 0;     // of the entry with its content; 0: none
    bool followsLink = false;  // whether it, or an earlier entry of the name, is a link
  };

  Last& lastOf(kj::StringPtr name) {
    return lasts.findOrCreate(name, [&]() {
      return kj::HashMap<kj::String, Last>::Entry{kj::str(name), Last()};
    });
  }

  void group() {
    for (auto& name: names) {
      auto position = lastOf(name).position;
      auto& here = byPosition.findOrCreate(position, [&]() {
        return kj::HashMap<uint64_t, kj::Vector<kj::String>>::Entry{
            position, kj::Vector<kj::String>()};
      });
      here.add(kj::mv(name));
    }
    grouped = true;
  }

  kj::HashMap<kj::String, Last> lasts;
  kj::Vector<kj::String> names;  // of links, and of files that follow them, in the archive's order
  kj::HashMap<kj::String, kj::String> lostTargets;
  kj::HashMap<uint64_t, kj::Vector<kj::String>> byPosition;
  bool grouped = false;
};

kj::StringPtr wordFor(unsigned type) {
  switch (type) {
    case AE_IFLNK:
      return "a symbolic link"_kj;
    case AE_IFIFO:
      return "a pipe"_kj;
    case AE_IFSOCK:
      return "a socket"_kj;
    case AE_IFCHR:
    case AE_IFBLK:
      return "a device"_kj;
    default:
      return "of an unknown kind"_kj;
  }
}

// Reads the archive once, and a second time if it holds hard links. A link comes after its file,
// and this class keeps no content.
class ArchiveMembers final: public Members {
public:
  explicit ArchiveMembers(kj::StringPtr path)
      : path(kj::str(path)),
        content(isTar(path) ? Archive::Content::TAR : Archive::Content::MEMBERS),
        forms(path) {
    archive.emplace(path, content);
    for (auto& each: namesOfZip(path)) {
      auto name = withoutDot(each.written);
      addForm(each.isUtf8 ? composed(name) : kj::str(name), name);
    }
    struct stat status;
    if (::stat(path.cStr(), &status) == 0) bytes = status.st_size;
    if (bytes == 0) configs::fail("cannot read ", path, ": it is empty. Get it again");
  }

  kj::Maybe<kj::StringPtr> next() override {
    for (;;) {
      if (linksHere.size() > linkPosition) {
        name = kj::mv(linksHere[linkPosition++]);
        if (isHidden(name)) continue;
        return kj::StringPtr(name);
      }
      if (ended) return nullptr;
      KJ_IF_MAYBE(entry, KJ_ASSERT_NONNULL(archive).next()) {
        size = entry->size;
        ++position;
        if (secondPass) {
          takeLinks();
        } else if (isFile(*entry)) {
          return kj::StringPtr(name);
        }
      } else if (secondPass || links.empty()) {
        if (!secondPass) countEmpty();
        ended = true;
      } else {
        countEmpty();
        secondPass = true;
        archive.emplace(path, content);
        position = 0;
        takeLinks();
      }
    }
  }

  kj::Array<kj::byte> read(size_t bytesMax) override {
    if (secondPass) {
      if (position == 0) {
        configs::fail("is a hard link to ", links.lostTargetOf(name),
            ", which is not a file before it in ", path);
      }
      if (linked == nullptr && problem == nullptr) {
        problem = kj::runCatchingExceptions([&]() { linked = readEntry(bytesMax); });
      }
      KJ_IF_MAYBE(e, problem) kj::throwFatalException(kj::cp(*e));
      return kj::heapArray<kj::byte>(KJ_ASSERT_NONNULL(linked));
    }
    return readEntry(bytesMax);
  }

  const LeftOut& notRegular() const override { return others; }
  const LeftOut& unreadable() const override { return nameless; }
  const LeftOut& empty() const override { return emptyOnes; }
  const LeftOut& hidden() const override { return hiddenOnes; }
  uint64_t done() const override {
    return (secondPass ? bytes : 0) + KJ_ASSERT_NONNULL(archive).done();
  }
  uint64_t total() const override { return links.empty() ? bytes : 2 * bytes; }

private:
  // Whether the first pass returns `entry`. Then `name` is its name.
  bool isFile(ArchiveEntry& entry) {
    bool isFolder = entry.type == AE_IFDIR;
    KJ_IF_MAYBE(n, entry.name) {
      name = kj::mv(*n);
      noteFolders(withoutSlash(name), isFolder);
      if (isFolder) return false;
    } else if (isFolder) {
      return false;
    } else {
      nameless.add(kj::str("entry ", position),
          "its name is not valid, or this machine has no UTF-8 locale");
      return false;
    }
    if (content == Archive::Content::TAR) addForm(name, entry.written);
    KJ_IF_MAYBE(target, entry.target) {
      // A hidden file is added too, because a link may point to it.
      links.addLink(name, kj::mv(*target));
      return false;
    }
    if (entry.type == AE_IFREG && !links.addFile(name, position)) return false;
    if (isHidden(name)) return false;
    if (entry.type == AE_IFREG) return true;
    others.add(name, wordFor(entry.type));
    return false;
  }

  // Records that the folders above `path` are not empty, and records `path` if it is a folder
  // itself. Of a hidden folder, records only that it exists.
  void noteFolders(kj::StringPtr path, bool isFolder) {
    auto hidden = hiddenPartOf(path);
    KJ_IF_MAYBE(part, hidden) {
      path = *part;
      isFolder = false;
    }
    auto isEmpty = [&](kj::StringPtr folder) -> bool& {
      return folders.findOrCreate(folder, [&]() {
        return kj::HashMap<kj::String, bool>::Entry{kj::str(folder), true};
      });
    };
    if (isFolder && path.size() > 0) isEmpty(path);
    for (auto above = folderName(path); above.size() > 0 && isEmpty(above);
         above = folderName(above)) {
      isEmpty(above) = false;
    }
  }

  void countEmpty() {
    for (auto& folder: folders) {
      if (folder.value) emptyOnes.add(folder.key);
    }
  }

  // Refuses a second path that has the same composed() name.
  void addForm(kj::StringPtr path, kj::StringPtr written) {
    if (hiddenPartOf(path) == nullptr) forms.add(withoutSlash(path), withoutSlash(written));
  }

  // Whether `path` is hidden and therefore skipped. Counts it then. A hidden folder is counted
  // once.
  bool isHidden(kj::StringPtr path) {
    KJ_IF_MAYBE(part, hiddenPartOf(path)) {
      if (!hiddenNames.contains(*part)) {
        hiddenOnes.add(*part);
        hiddenNames.insert(kj::mv(*part));
      }
      return true;
    }
    return false;
  }

  void takeLinks() {
    linksHere = links.take(position);
    linkPosition = 0;
    linked = nullptr;
    problem = nullptr;
  }

  kj::Array<kj::byte> readEntry(size_t bytesMax) {
    return KJ_ASSERT_NONNULL(archive).read(size, bytesMax);
  }

  kj::String path;
  Archive::Content content;
  NameForms forms;
  kj::Maybe<Archive> archive;
  uint64_t bytes = 0;
  uint64_t position = 0;  // of the entry, counted from 1 in each pass
  kj::String name;
  int64_t size = 0;
  LeftOut others;
  LeftOut nameless;
  LeftOut hiddenOnes;
  LeftOut emptyOnes;
  kj::HashMap<kj::String, bool> folders;  // whether each is empty, as far as the archive was read
  kj::HashSet<kj::String> hiddenNames;

  HardLinks links;
  bool secondPass = false;
  bool ended = false;
  // the links to the present entry of the second pass; before the first entry, to missing files
  kj::Array<kj::String> linksHere;
  size_t linkPosition = 0;
  // The content of that entry, or the error of reading it.
  kj::Maybe<kj::Array<kj::byte>> linked;
  kj::Maybe<kj::Exception> problem;
};

class FolderMembers final: public Members {
public:
  explicit FolderMembers(kj::StringPtr path): folder(kj::str(path)) {
    auto below = allBelow(path);
    for (auto& each: below.notRegular) others.add(each);
    for (auto& each: below.hidden) hiddenOnes.add(each);
    for (auto& each: below.unreadable) closed.add(each);
    for (auto& each: below.empty) emptyOnes.add(each);
    names = kj::mv(below.files);
  }

  kj::Maybe<kj::StringPtr> next() override {
    if (position == names.size()) return nullptr;
    return kj::StringPtr(names[position++]);
  }
  kj::Array<kj::byte> read(size_t bytesMax) override {
    return contentOf(kj::str(folder, "/", names[position - 1]), bytesMax);
  }
  const LeftOut& notRegular() const override { return others; }
  const LeftOut& hidden() const override { return hiddenOnes; }
  const LeftOut& unreadable() const override { return closed; }
  const LeftOut& empty() const override { return emptyOnes; }
  uint64_t done() const override { return position; }
  uint64_t total() const override { return names.size(); }

private:
  kj::String folder;
  LeftOut others;
  LeftOut hiddenOnes;
  LeftOut closed;
  LeftOut emptyOnes;
  kj::Array<kj::String> names;
  size_t position = 0;
};

}  // namespace

kj::Own<Members> Members::open(kj::StringPtr path) {
  switch (pathKind(path)) {
    case PathKind::FOLDER:
      return kj::heap<FolderMembers>(path);
    case PathKind::FILE:
      if (isRecordIo(path)) return openRecordIo(path);
      return kj::heap<ArchiveMembers>(path);
    case PathKind::NOTHING:
      break;
  }
  configs::fail("there is no folder or archive at ", path);
}

bool isNamedAsImage(kj::StringPtr path) {
  auto name = kj::str(baseName(path));
  for (auto& c: name) {
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  }
  for (auto ending: {".jpeg"_kj, ".jpg"_kj, ".png"_kj}) {
    if (name.endsWith(ending)) return true;
  }
  return false;
}

bool isNamedAsArchive(kj::StringPtr path) {
  return withoutArchiveEnding(path).size() < path.size();
}

kj::String withoutArchiveEnding(kj::StringPtr path) {
  for (auto ending: {".zip"_kj, ".tar"_kj, ".tgz"_kj, ".tar.gz"_kj, ".tar.xz"_kj, ".tar.zst"_kj}) {
    if (path.endsWith(ending)) return kj::heapString(path.slice(0, path.size() - ending.size()));
  }
  return kj::str(path);
}

kj::Array<kj::byte> readUnpacked(kj::StringPtr path, size_t bytesMax, kj::StringPtr wayOut) {
  Archive archive(path, Archive::Content::RAW, wayOut.size() > 0 ? wayOut : GET_AGAIN);
  if (archive.next() == nullptr) return nullptr;
  auto bytes = about(path, [&]() { return archive.read(0, bytesMax); });
  // libarchive does not check the checksum of a gzip file.
  checkEnd(path, nullptr, true);
  return bytes;
}

}  // namespace io
