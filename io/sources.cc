#include "io/sources.h"

#include <dirent.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "io/archives.h"
#include "io/checksum.h"
#include "io/paths.h"

namespace io {

namespace {

using Files = kj::Array<kj::Array<kj::byte>>;

// Downloads are packed: their size is not known, but they are not larger than this.
constexpr uint64_t DOWNLOAD_BYTES_MAX = uint64_t(1) << 30;

// The names of what is directly in `folder`, sorted; nothing if it cannot be listed.
kj::Array<kj::String> namesIn(kj::StringPtr folder) {
  kj::Vector<kj::String> names;
  auto handle = ::opendir(folder.cStr());
  if (handle == nullptr) return nullptr;
  KJ_DEFER(::closedir(handle));
  while (auto entry = ::readdir(handle)) {
    if (entry->d_name[0] != '.') names.add(kj::str(entry->d_name));
  }
  std::sort(names.begin(), names.end());
  return names.releaseAsArray();
}

void check(const DatasetFile& file, kj::StringPtr path, kj::ArrayPtr<const kj::byte> bytes) {
  if (bytes.size() != file.size) {
    configs::fail(file.name, " from ", path, " is damaged: unpacked it has ", bytes.size(),
        " bytes, not ", file.size, "; get it again, or set data.source to another place");
  }
  auto sum = sha256Hex(bytes);
  if (sum != file.sha256) {
    configs::fail(file.name, " from ", path, " is damaged: the sha256 of its content is ", sum,
        ", not ", file.sha256, "; get it again, or set data.source to another place");
  }
}

Files readArchive(const DatasetSource& source, kj::StringPtr path, Progress& progress) {
  auto what = kj::str("unpacking ", baseName(path), ", bytes");
  auto files = kj::heapArray<kj::Array<kj::byte>>(source.files.size());
  auto members = Members::open(path);
  for (;;) {
    auto name = members->next();
    progress(what, members->done(), members->total());
    KJ_IF_MAYBE(n, name) {
      for (auto i: kj::indices(source.files)) {
        if (baseName(*n) == source.files[i].name && files[i].size() == 0) {
          files[i] = members->read(source.files[i].size);
        }
      }
    } else {
      break;
    }
  }
  for (auto i: kj::indices(source.files)) {
    if (files[i].size() == 0) {
      configs::fail(path, " does not hold ", source.files[i].name,
          ": set data.source to a folder or an archive that does");
    }
    check(source.files[i], path, files[i]);
  }
  return files;
}

// The path of one file in `folder`, packed or not; null if it is not there.
kj::Maybe<kj::String> findFile(
    const DatasetSource& source, kj::StringPtr folder, const DatasetFile& file) {
  for (auto suffix: {"", ".gz"}) {
    auto path = kj::str(folder, "/", file.name, suffix);
    if (pathKind(path) == PathKind::FILE) return kj::mv(path);
    if (source.archiveFolder != nullptr) {
      path = kj::str(folder, "/", source.archiveFolder, "/", file.name, suffix);
      if (pathKind(path) == PathKind::FILE) return kj::mv(path);
    }
  }
  return nullptr;
}

// What was looked at in vain, each a clause for the message.
using Seen = kj::Vector<kj::String>;

kj::Maybe<Files> readFolder(const DatasetSource& source, kj::StringPtr folder, Progress& progress) {
  kj::Vector<kj::String> paths;
  for (auto& file: source.files) {
    KJ_IF_MAYBE(path, findFile(source, folder, file)) paths.add(kj::mv(*path));
  }
  if (paths.size() == source.files.size()) {
    auto files = kj::heapArrayBuilder<kj::Array<kj::byte>>(paths.size());
    for (auto i: kj::indices(paths)) {
      progress(kj::str("reading ", folder, ", files"), i, paths.size());
      auto bytes = readUnpacked(paths[i], source.files[i].size);
      check(source.files[i], paths[i], bytes);
      files.add(kj::mv(bytes));
    }
    return files.finish();
  }
  if (source.archivePrefix != nullptr) {
    for (auto& name: namesIn(folder)) {
      if (name.startsWith(source.archivePrefix)) {
        return readArchive(source, kj::str(folder, "/", name), progress);
      }
    }
  }
  return nullptr;
}

// `place` itself, and its sub-folder for this data set.
kj::Maybe<Files> readPlace(
    const DatasetKind& kind, kj::StringPtr place, Progress& progress, Seen& seen) {
  auto& source = *kind.source;
  if (pathKind(place) == PathKind::FILE) return readArchive(source, place, progress);
  // The sub-folder first: mnist and fashion_mnist have the same file names.
  for (auto& folder:
      kj::arr(kj::str(place, "/", source.folder), kj::str(place, "/", kind.name), kj::str(place))) {
    KJ_IF_MAYBE(files, readFolder(source, folder, progress)) {
      return kj::mv(*files);
    }
  }
  if (pathKind(place) == PathKind::NOTHING) {
    seen.add(kj::str(place, " is not there"));
    return nullptr;
  }
  for (auto& file: source.files) {
    if (findFile(source, place, file) == nullptr) {
      seen.add(kj::str(place, " has no ", file.name));
      break;
    }
  }
  return nullptr;
}

// Downloads from `address`, which ends in '/'; null, and a clause for `seen`, if that fails: what a
// host sends in place of the files is no reason not to ask the next.
kj::Maybe<Files> readAddress(const DatasetKind& kind, kj::StringPtr address,
    kj::StringPtr downloads, Progress& progress, Seen& seen) {
  kj::Maybe<Files> files;
  auto problem = kj::runCatchingExceptions([&]() {
    for (auto name: kind.source->downloads) {
      download(kj::str(address, name), kj::str(downloads, "/", name), DOWNLOAD_BYTES_MAX, progress);
    }
    files = readFolder(*kind.source, downloads, progress);
  });
  KJ_IF_MAYBE(e, problem) seen.add(kj::str(e->getDescription()));
  return files;
}

[[noreturn]] void notFound(
    const DatasetKind& kind, const Seen& seen, kj::StringPtr what, kj::StringPtr otherwise) {
  configs::fail("cannot find the data set ", kind.name, ": ", kj::strArray(seen, ", "), "; set ",
      what, " to a folder that holds ", kj::strArray(kind.source->downloads, ", "), otherwise);
}

}  // namespace

kj::Array<kj::Array<kj::byte>> findFiles(const DatasetKind& kind, kj::Maybe<kj::StringPtr> source,
    kj::Maybe<kj::StringPtr> datasets, kj::StringPtr downloads, Progress& progress) {
  Seen seen;
  auto fromAddress = [&](kj::StringPtr address) {
    return readAddress(kind, address, downloads, progress, seen);
  };
  KJ_IF_MAYBE(s, source) {
    if (isAddress(*s)) {
      auto slash = s->endsWith("/") ? "" : "/";
      KJ_IF_MAYBE(files, fromAddress(kj::str(*s, slash, kind.source->folder, "/"))) {
        return kj::mv(*files);
      }
      KJ_IF_MAYBE(files, fromAddress(kj::str(*s, slash))) return kj::mv(*files);
    } else {
      KJ_IF_MAYBE(files, readPlace(kind, *s, progress, seen)) return kj::mv(*files);
    }
    notFound(kind, seen, "data.source", ", or leave it out");
  }
  KJ_IF_MAYBE(d, datasets) {
    KJ_IF_MAYBE(files, readPlace(kind, *d, progress, seen)) return kj::mv(*files);
  }
  if (kind.source->systemFolder != nullptr) {
    KJ_IF_MAYBE(files, readPlace(kind, kind.source->systemFolder, progress, seen)) {
      return kj::mv(*files);
    }
  }
  for (auto address: kind.source->addresses) {
    KJ_IF_MAYBE(files, fromAddress(address)) return kj::mv(*files);
  }
  kj::String package;
  if (kind.source->systemPackage != nullptr) {
    package = kj::str(", or install Debian's package ", kind.source->systemPackage);
  }
  notFound(kind, seen, "data.source or the environment's RUNNER_DATASETS", package);
}

ImagePlace findImages(
    const DatasetKind& kind, kj::Maybe<kj::StringPtr> source, kj::Maybe<kj::StringPtr> datasets) {
  kj::String path;
  KJ_IF_MAYBE(s, source) {
    if (isAddress(*s)) {
      configs::fail("images cannot be read from ", *s,
          ": download the archive and set data.source to its path");
    }
    path = kj::str(*s);
  } else KJ_IF_MAYBE(d, datasets) {
    path = kj::str(*d, "/", kind.source->folder);
  } else {
    configs::fail("the data set ", kind.name,
        " is a folder of your own: set data.source to a folder or an archive of JPEG files");
  }
  auto kindOfPath = pathKind(path);
  if (kindOfPath == PathKind::NOTHING) {
    configs::fail(
        "there is nothing at ", path, ": set data.source to a folder or an archive of JPEG files");
  }
  bool isFolder = kindOfPath == PathKind::FOLDER;
  auto folder = isFolder ? kj::str(path) : folderName(path);
  if (folder == "") folder = kj::str(path.startsWith("/") ? "/" : ".");
  ImagePlace place;
  auto labels = kj::str(folder, "/labels.tsv");
  if (pathKind(labels) == PathKind::FILE) place.labels = kj::mv(labels);
  if (isFolder && place.labels != nullptr) {
    kj::Vector<kj::String> archives;
    for (auto& name: namesIn(folder)) {
      bool packed = name.endsWith(".zip") || name.endsWith(".tar") || name.endsWith(".tgz") ||
                    name.endsWith(".tar.gz") || name.endsWith(".tar.xz") ||
                    name.endsWith(".tar.zst");
      if (packed) archives.add(kj::str(folder, "/", name));
    }
    if (archives.size() == 1) path = kj::mv(archives[0]);
  }
  place.images = kj::mv(path);
  return place;
}

}  // namespace io
