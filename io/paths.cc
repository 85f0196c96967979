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

namespace io {

namespace {

bool isHidden(kj::StringPtr name) {
  return name == "__MACOSX" || (name.startsWith(".") && name != "." && name != "..");
}

// A folder on the way down, by what tells it from all others of the machine.
struct Level {
  dev_t device;
  ino_t number;
  const Level* above;
};

// `prefix` is what stands before the names that come back: "" or "a/b/". Returns false if `folder`
// is one of those above it, which a link leads back to.
bool addFilesBelow(kj::StringPtr folder, kj::StringPtr prefix, const Level* above,
    kj::Vector<kj::String>& names, kj::Vector<kj::String>& others, kj::Vector<kj::String>& hidden) {
  auto handle = ::opendir(folder.cStr());
  if (handle == nullptr) configs::fail("cannot list ", folder, ": ", strerror(errno));
  KJ_DEFER(::closedir(handle));
  struct stat status;
  KJ_SYSCALL(::fstat(::dirfd(handle), &status), folder);
  for (auto level = above; level != nullptr; level = level->above) {
    if (level->device == status.st_dev && level->number == status.st_ino) return false;
  }
  Level here = {status.st_dev, status.st_ino, above};
  while (auto entry = ::readdir(handle)) {
    kj::StringPtr own = entry->d_name;
    if (own == "." || own == "..") continue;
    auto path = kj::str(folder, "/", own);
    auto name = kj::str(prefix, own);
    if (isHidden(own)) {
      hidden.add(kj::mv(name));
      continue;
    }
    switch (pathKind(path)) {
      case PathKind::FILE:
        names.add(kj::mv(name));
        break;
      case PathKind::FOLDER:
        if (!addFilesBelow(path, kj::str(name, "/"), &here, names, others, hidden)) {
          others.add(kj::str(name, " (a link to a folder that it lies in)"));
        }
        break;
      case PathKind::NOTHING:
        KJ_IF_MAYBE(why, whyNeither(path)) others.add(kj::str(name, " (", *why, ")"));
        break;
    }
  }
  return true;
}

// Returns when the disk knows the names in `folder`. A file system that cannot do that is not an
// error.
void syncFolder(kj::StringPtr folder) {
  int fd = ::open(folder.cStr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  kj::AutoCloseFd owned(fd);
  ::fsync(fd);
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
  if (::lstat(path.cStr(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return nullptr;
    return kj::str(strerror(errno));
  }
  switch (error) {
    case ENOENT:
      return kj::str("a link to nothing");
    case ELOOP:
      return kj::str("a link to itself");
    default:
      return kj::str(strerror(error));
  }
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

kj::Array<kj::String> filesBelow(kj::StringPtr folder, kj::Maybe<PassedOver&> passedOver) {
  kj::Vector<kj::String> names, others, hidden;
  addFilesBelow(folder, "", nullptr, names, others, hidden);
  std::sort(names.begin(), names.end());
  KJ_IF_MAYBE(p, passedOver) {
    std::sort(others.begin(), others.end());
    std::sort(hidden.begin(), hidden.end());
    for (auto& name: others) p->notRegular.add(name);
    for (auto& name: hidden) p->hidden.add(name);
  }
  return names.releaseAsArray();
}

kj::Array<kj::byte> contentOf(kj::StringPtr path, size_t bytesMax) {
  int fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) configs::fail("cannot be opened: ", strerror(errno));
  kj::AutoCloseFd owned(fd);
  struct stat status;
  KJ_SYSCALL(::fstat(fd, &status), path);
  if (uint64_t(status.st_size) > bytesMax) {
    configs::fail("has ", status.st_size, " bytes; at most ", bytesMax, " are read");
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
