#include "io/datasets/sources.h"

#include <dirent.h>
#include <kj/debug.h>
#include <kj/vector.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "io/checksum.h"
#include "io/datasets/archives.h"
#include "io/datasets/fetch.h"
#include "io/paths.h"

namespace io {

namespace {

using Files = kj::Array<kj::Array<kj::byte>>;

// Downloads are compressed. Their size is not known, but they are smaller than this.
constexpr uint64_t DOWNLOAD_BYTES_MAX = uint64_t(1) << 30;

// Returns the sorted names of everything directly in `folder`. Empty if it cannot be listed.
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

void check(const DataConfig& config, const DatasetFile& file, kj::StringPtr path,
    kj::ArrayPtr<const kj::byte> bytes) {
  auto otherwise = kj::str(". Get it again, or set ", config.names.source, " to another place");
  if (bytes.size() != file.size) {
    configs::fail(file.name, " from ", path, " is damaged: unpacked it has ", bytes.size(),
        " bytes, not ", file.size, otherwise);
  }
  if (file.sha256 == nullptr) return;
  auto sum = sha256Hex(bytes);
  if (sum != file.sha256) {
    configs::fail(file.name, " from ", path, " is damaged: the sha256 of its content is ", sum,
        ", not ", file.sha256, otherwise);
  }
}

Files readArchive(const DataConfig& config, kj::StringPtr path, Progress& progress) {
  auto& source = *config.dataset->source;
  auto what = kj::str("unpacking ", baseName(path), ", bytes");
  auto files = kj::heapArray<kj::Array<kj::byte>>(source.files.size());
  auto members = Members::open(path);
  for (;;) {
    auto name = members->next();
    progress(what, members->done(), members->total());
    KJ_IF_MAYBE(n, name) {
      for (auto i: kj::indices(source.files)) {
        if (baseName(*n) == source.files[i].name && files[i].size() == 0) {
          files[i] = about(
              kj::str(*n, " of ", path), [&]() { return members->read(source.files[i].size); });
        }
      }
    } else {
      break;
    }
  }
  for (auto i: kj::indices(source.files)) {
    if (files[i].size() == 0) {
      configs::fail(path, " does not contain ", source.files[i].name, ". Set ", config.names.source,
          " to a folder or an archive that does");
    }
    check(config, source.files[i], path, files[i]);
  }
  return files;
}

// Returns the path of one file in `folder`, compressed or not. Null if it is not there.
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

bool contains(kj::StringPtr text, kj::StringPtr part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end()) != text.end();
}

// The places that were searched in vain, each as a clause for the message.
using Seen = kj::Vector<kj::String>;

// Returns the paths of all files of the data set in `folder`, or else the path of their archive.
// Empty if neither is there.
kj::Array<kj::String> filesIn(const DatasetSource& source, kj::StringPtr folder) {
  kj::Vector<kj::String> paths;
  for (auto& file: source.files) {
    KJ_IF_MAYBE(path, findFile(source, folder, file)) paths.add(kj::mv(*path));
  }
  if (paths.size() == source.files.size()) return paths.releaseAsArray();
  if (source.archivePrefix != nullptr) {
    for (auto& name: namesIn(folder)) {
      if (name.startsWith(source.archivePrefix)) return kj::arr(kj::str(folder, "/", name));
    }
  }
  return nullptr;
}

// Does the same for `place`, an archive or a folder. The sub-folder for this data set comes first,
// because mnist and fashion_mnist have the same file names.
kj::Array<kj::String> filesAt(const DatasetKind& kind, kj::StringPtr place) {
  if (pathKind(place) == PathKind::FILE) return kj::arr(kj::str(place));
  for (auto& folder: kj::arr(kj::str(place, "/", kind.source->folder),
           kj::str(place, "/", kind.name), kj::str(place))) {
    auto paths = filesIn(*kind.source, folder);
    if (paths.size() > 0) return paths;
  }
  return nullptr;
}

// Reads what filesIn() or filesAt() has found. Returns null if that is nothing.
kj::Maybe<Files> readFiles(
    const DataConfig& config, kj::ArrayPtr<const kj::String> paths, Progress& progress) {
  auto& source = *config.dataset->source;
  if (paths.size() == 0) return nullptr;
  if (paths.size() < source.files.size()) return readArchive(config, paths[0], progress);
  auto files = kj::heapArrayBuilder<kj::Array<kj::byte>>(paths.size());
  for (auto i: kj::indices(paths)) {
    progress(kj::str("reading ", folderName(paths[i]), ", files"), i, paths.size());
    auto bytes = readUnpacked(paths[i], source.files[i].size);
    check(config, source.files[i], paths[i], bytes);
    files.add(kj::mv(bytes));
  }
  return files.finish();
}

// Returns a clause about a place that is neither a file nor a folder.
kj::String nothingAt(kj::StringPtr place) {
  KJ_IF_MAYBE(why, whyUnreadable(place)) {
    return kj::str(place, " cannot be accessed: ", *why);
  }
  KJ_IF_MAYBE(why, whyNeither(place)) {
    return kj::str(place, " (", *why, ") is not a folder or an archive");
  }
  return kj::str(place, " is not there");
}

// Looks in `place` itself, and in its sub-folder for this data set.
kj::Maybe<Files> readPlace(
    const DataConfig& config, kj::StringPtr place, Progress& progress, Seen& seen) {
  auto& source = *config.dataset->source;
  KJ_IF_MAYBE(files, readFiles(config, filesAt(*config.dataset, place), progress)) {
    return kj::mv(*files);
  }
  if (pathKind(place) == PathKind::NOTHING) {
    seen.add(nothingAt(place));
    return nullptr;
  }
  auto own = kj::str(place, "/", source.folder);
  auto folder = pathKind(own) == PathKind::FOLDER ? own.asPtr() : place;
  for (auto& file: source.files) {
    if (findFile(source, folder, file) == nullptr) {
      seen.add(kj::str(folder, " has no ", file.name));
      break;
    }
  }
  return nullptr;
}

// Downloads from `address`, which ends in '/'. If that fails, returns null and adds a clause to
// `seen`: the next host may send the right files.
kj::Maybe<Files> readAddress(const DataConfig& config, kj::StringPtr address,
    kj::StringPtr downloads, Progress& progress, Seen& seen) {
  kj::Maybe<Files> files;
  auto problem = kj::runCatchingExceptions([&]() {
    for (auto name: config.dataset->source->downloads) {
      download(kj::str(address, name), kj::str(downloads, "/", name), DOWNLOAD_BYTES_MAX, progress);
    }
    // Messages name the address, because the user does not know the folder of downloads.
    auto place = withoutSlash(address);
    Progress reading = [&](kj::StringPtr what, uint64_t done, uint64_t total) {
      progress(replaced(what, downloads, place), done, total);
    };
    naming(downloads, place,
        [&]() { files = readFiles(config, filesIn(*config.dataset->source, downloads), reading); });
  });
  KJ_IF_MAYBE(e, problem) seen.add(kj::str(e->getDescription()));
  return files;
}

// Returns the paths where findFiles() looks, in this order.
kj::Vector<kj::StringPtr> localPlaces(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets) {
  kj::Vector<kj::StringPtr> places;
  KJ_IF_MAYBE(s, config.source) {
    if (!isAddress(*s)) places.add(*s);
    return places;
  }
  KJ_IF_MAYBE(d, datasets) places.add(*d);
  auto systemFolder = config.dataset->source->systemFolder;
  if (systemFolder != nullptr) places.add(systemFolder);
  return places;
}

constexpr kj::StringPtr OR_NO_SOURCE = ", or leave it out"_kj;

[[noreturn]] void notFound(
    const DataConfig& config, const Seen& seen, kj::StringPtr what, kj::StringPtr otherwise) {
  auto& kind = *config.dataset;
  configs::fail("cannot find the data set ", kind.name, ": ", kj::strArray(seen, ", "), ". Set ",
      what, " to a folder that contains ", kj::strArray(kind.source->downloads, ", "), otherwise,
      config.names.otherwise);
}

}  // namespace

kj::Array<kj::Array<kj::byte>> findFiles(const DataConfig& config,
    kj::Maybe<kj::StringPtr> datasets, kj::StringPtr downloads, Progress& progress) {
  auto& kind = *config.dataset;
  auto sourceName = config.names.source;
  Seen seen;
  auto fromAddress = [&](kj::StringPtr address) {
    return readAddress(config, address, downloads, progress, seen);
  };
  for (auto place: localPlaces(config, datasets)) {
    KJ_IF_MAYBE(files, readPlace(config, place, progress, seen)) return kj::mv(*files);
  }
  KJ_IF_MAYBE(s, config.source) {
    if (isAddress(*s)) {
      auto slash = s->endsWith("/") ? "" : "/";
      KJ_IF_MAYBE(files, fromAddress(kj::str(*s, slash, kind.source->folder, "/"))) {
        return kj::mv(*files);
      }
      KJ_IF_MAYBE(files, fromAddress(kj::str(*s, slash))) return kj::mv(*files);
    }
    notFound(config, seen, sourceName, OR_NO_SOURCE);
  }
  for (auto address: kind.source->addresses) {
    KJ_IF_MAYBE(files, fromAddress(address)) return kj::mv(*files);
  }
  kj::String package;
  if (kind.source->systemPackage != nullptr) {
    package = kj::str(", or install Debian's package ", kind.source->systemPackage);
  }
  notFound(config, seen, kj::str(sourceName, " or the environment's RUNNER_DATASETS"), package);
}

kj::Array<kj::String> findLocalFiles(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets) {
  for (auto place: localPlaces(config, datasets)) {
    auto paths = filesAt(*config.dataset, place);
    if (paths.size() > 0) return paths;
  }
  return nullptr;
}

kj::Array<kj::String> findIdxFiles(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets) {
  kj::String folder;
  KJ_IF_MAYBE(s, config.source) {
    folder = withoutSlash(*s);
  } else KJ_IF_MAYBE(d, datasets) {
    folder = kj::str(*d, "/", config.dataset->source->folder);
  }
  if (pathKind(folder) != PathKind::FOLDER) {
    configs::fail(folder.size() == 0 ? kj::str("the data set idx needs a folder of your own")
                                     : kj::str("there is no folder ", folder),
        ". Set ", config.names.source, " to a folder with files in MNIST's format");
  }
  auto names = namesIn(folder);
  // Whether `name` is the compressed file of one that is there unpacked.
  auto isSpare = [&](kj::StringPtr name) {
    if (!name.endsWith(".gz")) return false;
    auto unpacked = kj::heapString(name.slice(0, name.size() - 3));
    return std::binary_search(names.begin(), names.end(), unpacked);
  };
  auto find = [&](bool isTraining, kj::StringPtr part) {
    kj::Vector<kj::StringPtr> found;
    for (auto& name: names) {
      if (contains(name, part) && contains(name, "train") == isTraining && !isSpare(name)) {
        found.add(name);
      }
    }
    if (found.size() == 1) return kj::str(folder, "/", found[0]);
    configs::fail(folder, " has ", found.size() == 0 ? "no file" : "several files",
        " whose name contains ", part, isTraining ? " and train" : " but not train",
        found.size() == 0 ? "" : ": ", kj::strArray(found, ", "), ". Set ", config.names.source,
        " to a folder with one");
  };
  kj::Vector<kj::String> paths;
  for (bool isTraining: {true, false}) {
    for (auto part: {"images-idx3"_kj, "labels-idx1"_kj}) paths.add(find(isTraining, part));
  }
  return paths.releaseAsArray();
}

kj::Array<kj::Array<kj::byte>> readIdxFiles(
    const DataConfig& config, kj::Maybe<kj::StringPtr> datasets) {
  constexpr size_t FILE_BYTES_MAX = size_t(1) << 34;
  return KJ_MAP(path, findIdxFiles(config, datasets)) {
    return readUnpacked(path, FILE_BYTES_MAX);
  };
}

void requireSourcePlace(const DataConfig& config) {
  auto& kind = *config.dataset;
  KJ_IF_MAYBE(s, config.source) {
    if (!kind.source->isFixed() || isAddress(*s)) return;
    if (pathKind(*s) != PathKind::NOTHING) return;
    Seen seen;
    seen.add(nothingAt(*s));
    notFound(config, seen, config.names.source, OR_NO_SOURCE);
  }
}

namespace {

// Whether images lie in `folder` or below it, apart from those in archives.
bool hasImages(kj::StringPtr folder) {
  for (auto& name: allBelow(folder).files) {
    if (isNamedAsImage(name)) return true;
  }
  return false;
}

// Returns the place at `given`, a path or an address, which `setting` names.
ImagePlace imagesAt(kj::StringPtr given, kj::StringPtr setting, kj::StringPtr otherwise) {
  ImagePlace place;
  if (isAddress(given)) {
    place.images = kj::str(given);
    return place;
  }
  // Messages show its last name.
  auto path = withoutSlash(given);
  KJ_IF_MAYBE(why, whyUnreadable(path)) configs::fail("cannot access ", path, ": ", *why);
  auto kindOfPath = pathKind(path);
  if (kindOfPath == PathKind::NOTHING) {
    auto wayOut = kj::str(". Set ", setting, " to a folder or an archive of images", otherwise);
    KJ_IF_MAYBE(why, whyNeither(path)) {
      configs::fail(path, " (", *why, ") is not a folder or an archive", wayOut);
    }
    configs::fail("there is nothing at ", path, wayOut);
  }
  bool isFolder = kindOfPath == PathKind::FOLDER;
  auto folder = isFolder ? kj::str(path) : folderName(path);
  if (folder == "") folder = kj::str(path.startsWith("/") ? "/" : ".");
  auto labels = kj::str(folder, "/labels.tsv");
  KJ_IF_MAYBE(why, whyUnreadable(labels)) {
    configs::fail("cannot read the folder ", folder, ": ", *why);
  }
  if (pathKind(labels) == PathKind::FILE) {
    place.labels = kj::mv(labels);
  } else if (pathKind(labels) == PathKind::NOTHING) {
    KJ_IF_MAYBE(why, whyNeither(labels)) {
      configs::fail(labels, " is ", *why, ". Repair or remove it");
    }
  }
  if (isFolder && place.labels != nullptr) {
    kj::Vector<kj::String> archives;
    for (auto& name: namesIn(folder)) {
      if (isNamedAsArchive(name)) archives.add(kj::str(folder, "/", name));
    }
    // An archive beside images is not their source.
    if (archives.size() == 1 && !hasImages(folder)) path = kj::mv(archives[0]);
  }
  place.images = kj::mv(path);
  return place;
}

// Whether `folder` holds ILSVRC2012's training images, as they are downloaded.
bool hasIlsvrc(kj::StringPtr folder) {
  return pathKind(kj::str(folder, "/", ILSVRC_TRAINING)) == PathKind::FILE;
}

// Returns the images of ILSVRC2012 in `file` of `folder`.
ImagePlace ilsvrcAt(kj::StringPtr folder, kj::StringPtr file, kj::StringPtr setting) {
  ImagePlace place;
  place.images = kj::str(folder, "/", file);
  auto kit = kj::str(folder, "/", ILSVRC_DEVKIT);
  if (pathKind(kit) == PathKind::FILE) {
    place.kit = kj::mv(kit);
  } else if (file == ILSVRC_VALIDATION) {
    configs::fail(folder, " has ", file, ", but not ", ILSVRC_DEVKIT,
        ", which says what its images show. Add it, or set ", setting,
        " to validation images with labels");
  }
  return place;
}

// Lets the file `labels`, which `setting` names, label the images of `place`.
void labelBy(ImagePlace& place, const kj::Maybe<kj::String>& labels, kj::StringPtr setting) {
  KJ_IF_MAYBE(path, labels) {
    KJ_IF_MAYBE(why, whyUnreadable(*path)) configs::fail("cannot access ", *path, ": ", *why);
    if (pathKind(*path) != PathKind::FILE) {
      auto problem = kj::str("there is no file ", *path);
      KJ_IF_MAYBE(what, whyNeither(*path)) problem = kj::str(*path, " (", *what, ") is not a file");
      configs::fail(problem, ". Set ", setting, " to a file of labels");
    }
    place.labels = kj::str(*path);
    place.isChosen = true;
  }
}

}  // namespace

ImagePlace findImages(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets) {
  auto& kind = *config.dataset;
  auto setting = config.names.source, otherwise = config.names.otherwise;
  kj::Maybe<ImagePlace> place;
  KJ_IF_MAYBE(s, config.source) {
    auto folder = withoutSlash(*s);
    place = hasIlsvrc(folder) ? ilsvrcAt(folder, ILSVRC_TRAINING, setting)
                              : imagesAt(*s, setting, otherwise);
  } else KJ_IF_MAYBE(d, datasets) {
    place = imagesAt(kj::str(*d, "/", kind.source->folder), setting, otherwise);
  }
  KJ_IF_MAYBE(found, place) {
    labelBy(*found, config.labels, config.names.labels);
    return kj::mv(*found);
  }
  configs::fail("the data set ", kind.name, " needs a folder of your own. Set ", setting,
      " to a folder or an archive of images", otherwise);
}

kj::Maybe<ImagePlace> findValidationImages(
    const DataConfig& config, kj::Maybe<kj::StringPtr> datasets) {
  auto setting = config.names.validationSource;
  kj::Maybe<ImagePlace> place;
  KJ_IF_MAYBE(s, config.validationSource) {
    place = imagesAt(*s, setting, "");
  } else if (config.validationLabels != nullptr) {
    place = findImages(config, datasets);
  } else KJ_IF_MAYBE(s, config.source) {
    auto folder = withoutSlash(*s);
    bool has =
        hasIlsvrc(folder) && pathKind(kj::str(folder, "/", ILSVRC_VALIDATION)) == PathKind::FILE;
    if (has) place = ilsvrcAt(folder, ILSVRC_VALIDATION, setting);
  }
  KJ_IF_MAYBE(found, place) {
    labelBy(*found, config.validationLabels, config.names.validationLabels);
  }
  return place;
}

}  // namespace io
