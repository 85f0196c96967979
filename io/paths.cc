#include "io/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/vector.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace io {

namespace {

bool isHidden(kj::StringPtr name) {
  return name == "__MACOSX" || (name.startsWith(".") && name != "." && name != "..");
}

// A folder on the way down, identified by device and inode.
struct Level {
  dev_t device;
  ino_t number;
  const Level* above;
};

// Lists everything below a folder.
class Lister {
public:
  explicit Lister(kj::StringPtr root) {
    KJ_IF_MAYBE(why, list(root, "", nullptr)) {
      configs::fail("cannot read the folder ", root, ": ", *why);
    }
  }

  Below finish() {
    return {sorted(files), sorted(notRegular), sorted(unreadable), sorted(hidden), sorted(empty)};
  }

private:
  // `prefix` is the text before the names in `folder`: "" or "a/b/". Returns why `folder` cannot be
  // listed, or null if it can.
  kj::Maybe<kj::String> list(kj::StringPtr folder, kj::StringPtr prefix, const Level* above) {
    auto handle = ::opendir(folder.cStr());
    if (handle == nullptr) return kj::str(strerror(errno));
    KJ_DEFER(::closedir(handle));
    struct stat status;
    KJ_SYSCALL(::fstat(::dirfd(handle), &status), folder);
    for (auto level = above; level != nullptr; level = level->above) {
      if (level->device == status.st_dev && level->number == status.st_ino) {
        notRegular.add(kj::str(withoutSlash(prefix), " (a link to a folder that it lies in)"));
        return nullptr;
      }
    }
    // A folder that may be listed but not searched shows only names.
    if (::faccessat(::dirfd(handle), ".", X_OK, AT_EACCESS) != 0) return kj::str(strerror(errno));
    Level here = {status.st_dev, status.st_ino, above};
    bool isEmpty = true;
    while (auto entry = (errno = 0, ::readdir(handle))) {
      kj::StringPtr own = entry->d_name;
      if (own == "." || own == "..") continue;
      isEmpty = false;
      auto name = kj::str(prefix, own);
      if (isHidden(own)) {
        hidden.add(kj::mv(name));
      } else {
        add(kj::str(folder, "/", own), kj::mv(name), &here);
      }
    }
    // Without this, a disk that fails would hide images.
    if (errno != 0) return kj::str(strerror(errno));
    if (isEmpty && prefix.size() > 0) empty.add(withoutSlash(prefix));
    return nullptr;
  }

  void add(kj::StringPtr path, kj::String name, const Level* above) {
    auto put = [&](kj::Vector<kj::String>& to, kj::StringPtr why) {
      to.add(kj::str(name, " (", why, ")"));
    };
    switch (pathKind(path)) {
      case PathKind::FILE:
        files.add(kj::mv(name));
        break;
      case PathKind::FOLDER:
        KJ_IF_MAYBE(why, list(path, kj::str(name, "/"), above)) put(unreadable, *why);
        break;
      case PathKind::NOTHING:
        KJ_IF_MAYBE(why, whyNeither(path)) put(notRegular, *why);
        KJ_IF_MAYBE(why, whyUnreadable(path)) put(unreadable, *why);
        break;
    }
  }

  static kj::Array<kj::String> sorted(kj::Vector<kj::String>& names) {
    std::sort(names.begin(), names.end());
    return names.releaseAsArray();
  }

  kj::Vector<kj::String> files, notRegular, unreadable, hidden, empty;
};

// Returns when the names in `folder` are on disk. A file system that cannot sync folders is not an
// error.
void syncFolder(kj::StringPtr folder) {
  int fd = ::open(folder.cStr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  kj::AutoCloseFd owned(fd);
  if (::fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) {
    configs::fail("cannot write the folder ", folder, " to disk: ", strerror(errno));
  }
}

[[noreturn]] void failToWrite(int error) {
  bool isFull = error == ENOSPC || error == EDQUOT;
  configs::fail(
      "cannot be written: ", strerror(error), isFull ? ". Free some space on its disk" : "");
}

// Writes the file at `path`. If `isSynced`, returns when it is on disk.
void writeFile(kj::StringPtr path, kj::StringPtr text, bool isSynced) {
  int fd = ::open(path.cStr(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) configs::fail("cannot make ", path, ": ", strerror(errno));
  kj::AutoCloseFd owned(fd);
  about(path, [&]() {
    writeTo(fd, text.asBytes());
    if (isSynced) syncToDisk(fd);
  });
}

}  // namespace

kj::StringPtr baseName(kj::StringPtr path) {
  KJ_IF_MAYBE(slash, path.findLast('/')) {
    return path.slice(*slash + 1);
  }
  return path;
}

kj::String folderName(kj::StringPtr path) {
  KJ_IF_MAYBE(slash, path.findLast('/')) {
    return kj::heapString(path.slice(0, *slash));
  }
  return kj::str();
}

kj::StringPtr withoutDot(kj::StringPtr path) {
  while (path.startsWith("./")) {
    path = path.slice(2);
    while (path.startsWith("/")) path = path.slice(1);
  }
  return path;
}

kj::String withoutSlash(kj::StringPtr path) {
  size_t size = path.size();
  while (size > 1 && path[size - 1] == '/') --size;
  return kj::heapString(path.slice(0, size));
}

PathKind pathKind(kj::StringPtr path) {
  struct stat status;
  if (::stat(path.cStr(), &status) != 0) return PathKind::NOTHING;
  if (S_ISREG(status.st_mode)) return PathKind::FILE;
  return S_ISDIR(status.st_mode) ? PathKind::FOLDER : PathKind::NOTHING;
}

kj::Maybe<kj::String> whyNeither(kj::StringPtr path) {
  struct stat status;
  if (::stat(path.cStr(), &status) == 0) {
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return nullptr;
    if (S_ISFIFO(status.st_mode)) return kj::str("a pipe");
    if (S_ISSOCK(status.st_mode)) return kj::str("a socket");
    return kj::str("a device");
  }
  int error = errno;
  if (::lstat(path.cStr(), &status) != 0) return nullptr;
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return kj::str("a link to nothing");
    case ELOOP:
      return kj::str("a link to itself");
    default:
      return nullptr;
  }
}

kj::Maybe<kj::String> whyUnreadable(kj::StringPtr path) {
  struct stat status;
  if (::stat(path.cStr(), &status) == 0) return nullptr;
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return nullptr;
  return kj::str(strerror(errno));
}

bool isBelow(kj::StringPtr path, kj::StringPtr folder) {
  namespace fs = std::filesystem;
  std::error_code problem;
  auto inner = fs::weakly_canonical(path.cStr(), problem);
  if (problem) return false;
  auto outer = fs::weakly_canonical(folder.cStr(), problem);
  if (problem) return false;
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

kj::Maybe<kj::String> hiddenPartOf(kj::StringPtr path) {
  for (size_t begin = 0; begin < path.size();) {
    size_t end = std::find(path.begin() + begin, path.end(), '/') - path.begin();
    auto name = kj::heapString(path.slice(begin, end));
    if (isHidden(name)) return kj::heapString(path.slice(0, end));
    begin = end + 1;
  }
  return nullptr;
}

Below allBelow(kj::StringPtr folder) {
  return Lister(folder).finish();
}

kj::Array<kj::byte> contentOf(kj::StringPtr path, size_t bytesMax) {
  // Opening a FIFO would wait for its writer.
  int fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) configs::fail("cannot be opened: ", strerror(errno));
  kj::AutoCloseFd owned(fd);
  struct stat status;
  KJ_SYSCALL(::fstat(fd, &status), path);
  if (!S_ISREG(status.st_mode)) configs::fail("is not a regular file");
  if (uint64_t(status.st_size) > bytesMax) {
    configs::fail("has ", status.st_size, " bytes, but at most ", bytesMax, " are allowed");
  }
  auto bytes = kj::heapArray<kj::byte>(status.st_size);
  for (auto rest = bytes.asPtr(); rest.size() > 0;) {
    auto n = ::read(fd, rest.begin(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) configs::fail("cannot be read: ", strerror(errno));
    if (n == 0) configs::fail("became shorter while it was read");
    rest = rest.slice(n, rest.size());
  }
  return bytes;
}

kj::Array<kj::byte> readFile(kj::StringPtr path, size_t bytesMax) {
  return about(path, [&]() { return contentOf(path, bytesMax); });
}

void writeTo(int fd, kj::ArrayPtr<const kj::byte> bytes) {
  for (auto rest = bytes; rest.size() > 0;) {
    auto n = ::write(fd, rest.begin(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) failToWrite(errno);
    rest = rest.slice(n, rest.size());
  }
}

void syncToDisk(int fd) {
  // On a network file system, a full disk may be reported only here.
  if (::fsync(fd) != 0) failToWrite(errno);
}

void writeText(kj::StringPtr path, kj::StringPtr text) {
  writeFile(path, text, false);
}

void writeSynced(kj::StringPtr path, kj::StringPtr text) {
  writeFile(path, text, true);
}

kj::String replaced(kj::StringPtr text, kj::StringPtr from, kj::StringPtr to) {
  kj::Vector<char> result;
  for (auto rest = text;;) {
    auto found = strstr(rest.cStr(), from.cStr());
    if (found == nullptr) {
      result.addAll(rest);
      return kj::heapString(result);
    }
    result.addAll(rest.begin(), found);
    result.addAll(to);
    rest = rest.slice(found - rest.begin() + from.size());
  }
}

void moveIntoPlace(kj::StringPtr from, kj::StringPtr to) {
  if (::rename(from.cStr(), to.cStr()) != 0) {
    configs::fail("cannot move ", from, " to ", to, ": ", strerror(errno));
  }
  auto folder = folderName(to);
  syncFolder(folder == "" ? kj::str(to.startsWith("/") ? "/" : ".") : kj::mv(folder));
}

}  // namespace io
