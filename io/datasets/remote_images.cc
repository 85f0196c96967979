#include "io/datasets/remote_images.h"

#include <errno.h>
#include <kj/debug.h>
#include <kj/encoding.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "configs/language/environment.h"
#include "configs/language/failure.h"
#include "io/checksum.h"
#include "io/datasets/archives.h"
#include "io/paths.h"

namespace io {

namespace {

struct Setting {
  kj::StringPtr address;
  kj::StringPtr name;
};

// Returns the settings of `config` that are addresses of images, each address once.
kj::Vector<Setting> addressesOf(const DataConfig& config) {
  kj::Vector<Setting> found;
  if (config.dataset->source->format != DatasetSource::FOLDER) return found;
  auto add = [&](const kj::Maybe<kj::String>& place, kj::StringPtr name) {
    KJ_IF_MAYBE(p, place) {
      bool isKnown = found.size() > 0 && found[0].address == *p;
      if (isAddress(*p) && !isKnown) found.add(Setting{*p, name});
    }
  };
  add(config.source, config.names.source);
  add(config.validationSource, config.names.validationSource);
  return found;
}

kj::String shortSum(kj::StringPtr text) {
  return kj::heapString(sha256Hex(text.asBytes()).slice(0, 16));
}

kj::String identityOf(const RemoteFile& file) {
  KJ_IF_MAYBE(size, file.size_bytes) return kj::str(*size, " ", file.version);
  return kj::str("? ", file.version);
}

// Returns the path of the file that keeps the identity of the file at `address`.
kj::String keptPath(kj::StringPtr address) {
  return kj::str(configs::cacheFolder(), "/address-", shortSum(address));
}

kj::String localPath(const RemoteFile& file, kj::StringPtr into) {
  return kj::str(into, "/", downloadFolder(file), "/", fileNameOf(file.address));
}

// Returns `3.4 GB`.
kj::String gigabytes(uint64_t bytes) {
  auto tenths = bytes / 100'000'000;
  return kj::str(tenths / 10, ".", tenths % 10, " GB");
}

void requireRoom(
    const DataConfig& config, kj::ArrayPtr<const RemoteFile> files, kj::StringPtr into) {
  uint64_t needed = 0;
  for (auto& file: files) {
    uint64_t size = file.size_bytes.orDefault(0);
    needed += size - kj::min(size, downloadedBytes(localPath(file, into)));
  }
  struct statvfs disk;
  if (::statvfs(into.cStr(), &disk) != 0 || disk.f_blocks == 0) return;
  uint64_t free = uint64_t(disk.f_bavail) * disk.f_frsize;
  if (needed <= free) return;
  auto names = KJ_MAP(file, files) {
    return shownAddress(file.address);
  };
  configs::fail("cannot download ", kj::strArray(names, " and "), ": this needs ",
      gigabytes(needed), ", but only ", gigabytes(free), " are free on the disk of ", into,
      ". Set ", config.names.folder, " to a folder on a larger disk, or make room");
}

// Whether the archive at `path` cannot be listed to its end. Only exceptions of `progress` are
// thrown.
bool isDamaged(kj::StringPtr path, Progress& progress) {
  auto what = kj::str("checking ", baseName(path), ", bytes");
  kj::Own<Members> members;
  auto fails = [](auto&& step) { return kj::runCatchingExceptions(step) != nullptr; };
  if (fails([&]() { members = Members::open(path); })) return true;
  for (bool isAtEnd = false; !isAtEnd;) {
    if (fails([&]() { isAtEnd = members->next() == nullptr; })) return true;
    progress(what, members->done(), members->total());
  }
  return false;
}

}  // namespace

RemoteFiles lookUpFiles(const DataConfig& config, Progress& progress) {
  return KJ_MAP(each, addressesOf(config)) {
    RemoteFile file;
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { file = lookUp(each.address, progress); })) {
      configs::fail(e->getDescription(), ". Check ", each.name);
    }
    return file;
  };
}

void keepFiles(kj::ArrayPtr<const RemoteFile> files) {
  for (auto& file: files) {
    // Other processes see the old text or the new one.
    auto path = keptPath(file.address), part = kj::str(path, ".part-", ::getpid(), "-", ::gettid());
    writeSynced(part, identityOf(file));
    moveIntoPlace(part, path);
  }
}

kj::Maybe<RemoteFiles> keptFiles(const DataConfig& config) {
  constexpr size_t BYTES_MAX = 65536;
  kj::Vector<RemoteFile> files;
  for (auto& each: addressesOf(config)) {
    auto path = keptPath(each.address);
    if (pathKind(path) != PathKind::FILE) return nullptr;
    auto text = kj::heapString(readFile(path, BYTES_MAX).asChars());
    auto space = text.findFirst(' ').orDefault(text.size());
    RemoteFile file{kj::str(each.address), nullptr, nullptr};
    if (!text.startsWith("?")) file.size_bytes = strtoull(text.cStr(), nullptr, 10);
    if (space < text.size()) file.version = kj::str(text.slice(space + 1));
    files.add(kj::mv(file));
  }
  return files.releaseAsArray();
}

kj::String identityOf(kj::ArrayPtr<const RemoteFile> files, kj::StringPtr address) {
  for (auto& file: files) {
    if (file.address == address) return identityOf(file);
  }
  KJ_FAIL_REQUIRE("nobody has asked for this file");
}

void downloadFiles(const DataConfig& config, kj::ArrayPtr<const RemoteFile> files,
    kj::StringPtr into, Progress& progress) {
  requireRoom(config, files, into);
  for (auto& file: files) {
    auto path = localPath(file, into);
    auto folder = folderName(path);
    if (::mkdir(folder.cStr(), 0777) != 0 && errno != EEXIST) {
      configs::fail("cannot make the folder ", folder, ": ", strerror(errno));
    }
    download(file, path, progress);
  }
}

kj::String downloadFolder(const RemoteFile& file) {
  return kj::str("download-", shortSum(kj::str(file.address, "\n", identityOf(file))));
}

bool hasDownload(kj::ArrayPtr<const RemoteFile> files, kj::StringPtr into) {
  for (auto& file: files) {
    if (downloadedBytes(localPath(file, into)) > 0) return true;
  }
  return false;
}

bool removeDamaged(kj::ArrayPtr<const RemoteFile> files, kj::StringPtr into, Progress& progress) {
  bool wereAny = false;
  for (auto& file: files) {
    auto path = localPath(file, into);
    if (pathKind(path) != PathKind::FILE || !isDamaged(path, progress)) continue;
    // Callers handle other failures.
    wereAny |= ::unlink(path.cStr()) == 0;
  }
  return wereAny;
}

void useDownload(ImagePlace& place, kj::ArrayPtr<const RemoteFile> files, kj::StringPtr into) {
  for (auto& file: files) {
    if (file.address == place.images) {
      place.images = localPath(file, into);
      return;
    }
  }
}

kj::String withAddresses(
    kj::StringPtr text, kj::ArrayPtr<const RemoteFile> files, kj::StringPtr into) {
  auto result = kj::str(text);
  for (auto& file: files) {
    result = replaced(result, localPath(file, into), shownAddress(file.address));
  }
  return result;
}

}  // namespace io
