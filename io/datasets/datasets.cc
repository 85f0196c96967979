#include "io/datasets/datasets.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/encoding.h>
#include <kj/filesystem.h>
#include <kj/io.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "configs/language/environment.h"
#include "configs/language/failure.h"
#include "io/checksum.h"
#include "io/datasets/bad_images.h"
#include "io/datasets/import.h"
#include "io/datasets/remote_images.h"
#include "io/datasets/sources.h"
#include "io/images/augment.h"
#include "io/images/mean_file.h"
#include "io/paths.h"

namespace io {

namespace {

[[noreturn]] void failInTheWay(const DataConfig& config, kj::StringPtr path) {
  configs::fail("cannot make the folder ", path, ": a file has that name. Rename it, or set ",
      config.names.folder, " to another folder");
}

void makeFolders(const DataConfig& config, kj::StringPtr path) {
  for (size_t i = 1; i <= path.size(); ++i) {
    if (i < path.size() && path[i] != '/') continue;
    auto folder = kj::heapString(path.slice(0, i));
    if (::mkdir(folder.cStr(), 0777) == 0) continue;
    int error = errno;
    // On the way to an existing folder, others may be missing that we may not make.
    if (pathKind(folder) == PathKind::FOLDER) continue;
    if (error == EEXIST) failInTheWay(config, folder);
    configs::fail("cannot make the folder ", folder, ": ", strerror(error), ". Set ",
        config.names.folder, " to a folder that can be written");
  }
}

void removeFolder(kj::StringPtr path) {
  if (pathKind(path) == PathKind::NOTHING) return;
  auto filesystem = kj::newDiskFilesystem();
  filesystem->getRoot().remove(filesystem->getCurrentPath().evalNative(path));
}

// Size and time of the last change. If they differ, the file is another one.
kj::String identityOf(kj::StringPtr path) {
  struct stat status;
  if (::stat(path.cStr(), &status) != 0) {
    configs::fail("cannot access ", path, ": ", strerror(errno));
  }
  return kj::str(status.st_size, " ", status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec);
}

// Returns the name of the folder in the cache. It changes whenever the records would change.
// `remote` are the files at the addresses of `config`.
kj::String cacheName(const DataConfig& config, kj::ArrayPtr<const RemoteFile> remote) {
  Sha256 sum;
  auto add = [&](kj::StringPtr line) {
    sum.update(line.asBytes());
    sum.update(kj::StringPtr("\n").asBytes());
  };
  // Increase this number when the import of the same files gives other records or other warnings.
  add(config.dataset->source->format == DatasetSource::FOLDER ? "import 7" : "import 1");
  auto encoding = configs::nameIn(ENCODINGS, config.encoding);
  add(kj::str(config.dataset->name, " ", encoding, " ", config.resizeShortSide));
  for (auto& file: config.dataset->source->files) {
    add(file.sha256 == nullptr ? kj::str(file.size) : kj::str(file.sha256));
  }
  if (!config.dataset->source->isFixed() && config.dataset->source->format == DatasetSource::IDX) {
    auto current = kj::newDiskFilesystem()->getCurrentPath().clone();
    for (auto& path: findIdxFiles(config, configs::environment("RUNNER_DATASETS"))) {
      add(current.evalNative(path).toString());
      add(identityOf(path));
    }
  }
  if (config.dataset->source->format == DatasetSource::FOLDER) {
    add(config.onBadRecord == BadRecordPolicy::FAIL ? "fail" : "skip");
    auto addPlace = [&](const ImagePlace& place) {
      bool isRemote = isAddress(place.images);
      if (isRemote) {
        add(place.images);
        add(identityOf(remote, place.images));
      } else {
        auto absolute = kj::newDiskFilesystem()->getCurrentPath().evalNative(place.images);
        add(absolute.toString());
        add(identityOf(place.images));
      }
      KJ_IF_MAYBE(labels, place.labels) {
        add(place.isChosen ? "chosen" : "");
        add(identityOf(*labels));
      }
      KJ_IF_MAYBE(kit, place.kit) add(identityOf(*kit));
      if (isRemote || pathKind(place.images) != PathKind::FOLDER) return;
      auto below = allBelow(place.images);
      for (auto& name: below.files) {
        add(name);
        add(identityOf(kj::str(place.images, "/", name)));
      }
      // The warnings about skipped files depend on these lists. A change in them needs another
      // import.
      for (auto list: {&below.notRegular, &below.unreadable, &below.hidden}) {
        add(kj::str(list->size()));
        for (auto& name: *list) add(name);
      }
    };
    auto datasets = configs::environment("RUNNER_DATASETS");
    addPlace(findImages(config, datasets));
    KJ_IF_MAYBE(place, findValidationImages(config, datasets)) {
      add("validation");
      addPlace(*place);
    }
    KJ_IF_MAYBE(path, config.classNames) add(identityOf(*path));
  }
  // 64 bits are enough: no two data sets of one user will have the same.
  auto digest = kj::encodeHex(sum.finish());
  return kj::str(config.dataset->name, "-", encoding, "-", digest.slice(0, 16));
}

// Takes the lock of `path`, which lasts until the result is destroyed. The file stays. A lock of
// flock() belongs to the open file, and therefore also keeps threads of one process apart.
kj::AutoCloseFd lock(kj::StringPtr path, Progress& progress) {
  int fd = ::open(path.cStr(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    configs::fail("cannot make ", path, ": ", strerror(errno),
        ". Set RUNNER_CACHE to a folder that can be written");
  }
  kj::AutoCloseFd owned(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    progress("waiting for another process that imports the same data", 0, 0);
    KJ_SYSCALL(::flock(fd, LOCK_EX), path);
  }
  return owned;
}

// A file with the sentences on what an import left out, one per line, beside its databases. Absent
// if the import left out nothing.
constexpr kj::StringPtr LEFT_OUT_FILE = "left_out.txt"_kj;
constexpr size_t LEFT_OUT_BYTES_MAX = size_t(1) << 30;

void writeLeftOut(kj::StringPtr folder, kj::ArrayPtr<const kj::String> sentences) {
  if (sentences.size() == 0) return;
  auto path = kj::str(folder, "/", LEFT_OUT_FILE);
  int fd = ::open(path.cStr(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) configs::fail("cannot make ", path, ": ", strerror(errno));
  kj::AutoCloseFd owned(fd);
  auto text = kj::str(kj::strArray(sentences, "\n"), "\n");
  about(path, [&]() {
    writeTo(fd, text.asBytes());
    return true;
  });
}

// Reads them as Dataset::leftOut() returns them.
kj::Array<kj::String> readLeftOut(kj::StringPtr folder) {
  constexpr size_t SENTENCES_MAX = 5;
  auto path = kj::str(folder, "/", LEFT_OUT_FILE);
  if (pathKind(path) != PathKind::FILE) return nullptr;
  auto bytes = readFile(path, LEFT_OUT_BYTES_MAX);
  kj::Vector<kj::String> sentences;
  uint64_t count = 0;
  for (size_t begin = 0; begin < bytes.size(); count++) {
    size_t end = std::find(bytes.begin() + begin, bytes.end(), '\n') - bytes.begin();
    if (count <= SENTENCES_MAX) {
      sentences.add(kj::heapString(bytes.slice(begin, end).asChars()));
    }
    begin = end + 1;
  }
  // If only one sentence is hidden, a sentence about that fact would take as much room as the
  // hidden one.
  if (count > SENTENCES_MAX + 1) {
    sentences[SENTENCES_MAX] =
        kj::str(count - SENTENCES_MAX, " more warnings about what the import left out: see ", path);
  }
  return sentences.releaseAsArray();
}

bool isOpenedAt(int fd, kj::StringPtr path) {
  struct stat opened, there;
  return ::fstat(fd, &opened) == 0 && ::stat(path.cStr(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

bool hasFile(kj::StringPtr folder, kj::StringPtr name) {
  return pathKind(kj::str(folder, "/", name)) == PathKind::FILE;
}

// This file lies in a folder while an import writes it. A folder without it is not ours. It holds
// the mark of the import, by which another process knows whether it can go on with it.
constexpr kj::StringPtr UNFINISHED_FILE = "unfinished"_kj;
constexpr size_t MARK_BYTES_MAX = 4096;

// Returns what an import of a killed process must have in common with this one, so that this one
// can go on with it: the records that it makes, and after a space the start of the machine, because
// files that were not synced may have holes after a loss of power. Empty if it cannot go on.
kj::String markOf(const DataConfig& config, kj::StringPtr records) {
  constexpr kj::StringPtr BOOT = "/proc/sys/kernel/random/boot_id"_kj;
  std::string boot;
  std::getline(std::ifstream(BOOT.cStr()), boot);
  bool isFolder = config.dataset->source->format == DatasetSource::FOLDER;
  if (!isFolder || boot.empty()) return kj::String();
  return kj::str(records, " ", boot.c_str());
}

// Prepares the folder `part` for an import. Removes everything that another import has left there,
// unless it has the same `mark`. Downloads of `remote` stay, unless the machine has started anew:
// another import of the same files may have begun them. Throws if the folder holds anything that is
// not ours.
void takeOver(const DataConfig& config, kj::ArrayPtr<const RemoteFile> remote, kj::StringPtr part,
    kj::StringPtr mark) {
  auto filesystem = kj::newDiskFilesystem();
  auto folder = filesystem->getRoot().openSubdir(
      filesystem->getCurrentPath().evalNative(part), kj::WriteMode::MODIFY);
  auto names = folder->listNames();
  if (names.size() > 0 && !hasFile(part, UNFINISHED_FILE)) {
    configs::fail("the folder ", part, " is in the way: it contains ", printable(names[0]),
        ", so it was not left by an unfinished import. Rename or remove it, or set ",
        config.names.folder, " to another folder");
  }
  bool isSameStart = false;
  if (names.size() > 0 && mark.size() > 0) {
    auto before =
        kj::heapString(readFile(kj::str(part, "/", UNFINISHED_FILE), MARK_BYTES_MAX).asChars());
    if (before == mark) return;
    isSameStart = before.endsWith(mark.slice(KJ_ASSERT_NONNULL(mark.findFirst(' '))));
  }
  auto stays = [&](kj::StringPtr name) {
    if (name == UNFINISHED_FILE) return true;
    for (auto& file: remote) {
      if (isSameStart && name == downloadFolder(file)) return true;
    }
    return false;
  };
  auto file =
      folder->openFile(kj::Path(UNFINISHED_FILE), kj::WriteMode::CREATE | kj::WriteMode::MODIFY);
  file->truncate(0);
  for (auto& name: names) {
    if (!stays(name)) folder->remove(kj::Path(name));
  }
  file->writeAll(mark);
}

// Makes the folder `part`, in which `into` will be made, as takeOver() does. The result holds the
// lock of the folder; a killed process leaves no lock. Throws if another process has the lock, or
// if the folder is not an import's.
kj::AutoCloseFd takeFolder(const DataConfig& config, kj::ArrayPtr<const RemoteFile> remote,
    kj::StringPtr part, kj::StringPtr into, kj::StringPtr mark) {
  for (;;) {
    if (pathKind(part) == PathKind::FILE) failInTheWay(config, part);
    naming(part, into, [&]() { makeFolders(config, part); });
    int fd = ::open(part.cStr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // The owner has just moved or removed the folder.
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0) configs::fail("cannot open the folder ", part, ": ", strerror(errno));
    kj::AutoCloseFd owned(fd);
    // On a file system without such locks, nothing keeps two processes apart.
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      configs::fail("another process is writing ", into, ". Wait until it has ended, or set ",
          config.names.folder, " to another folder");
    }
    if (!isOpenedAt(fd, part)) continue;
    takeOver(config, remote, part, mark);
    return owned;
  }
}

std::atomic<uint> imports(0);

// Imports `records`, as cacheName() names them, into a folder beside `into`, calls `complete` with
// that folder, and then moves it to `into`. Replaces what is at `into`: a folder in which a file
// was deleted. A process that reads that folder keeps its open files. Throws if another process
// does the same.
//
// With `keepsIfInterrupted`, what was imported stays for the next call if `progress` throws. If the
// import fails, what it has downloaded of `remote` stays.
void importInto(const DataConfig& config, kj::ArrayPtr<const RemoteFile> remote,
    kj::StringPtr records, kj::StringPtr into, bool keepsIfInterrupted, Progress& progress,
    Warn& warn, kj::FunctionParam<void(kj::StringPtr part)> complete) {
  auto part = kj::str(into, ".part");
  ++imports;
  KJ_DEFER(--imports);
  auto mark = markOf(config, records);
  auto locked = takeFolder(config, remote, part, into, mark);
  bool isKept = false;
  Progress interruptible = [&](kj::StringPtr what, uint64_t done, uint64_t total) {
    KJ_ON_SCOPE_FAILURE(isKept = keepsIfInterrupted && mark.size() > 0);
    progress(what, done, total);
  };
  bool keepsDownload = false;
  auto import = [&]() {
    KJ_ON_SCOPE_FAILURE({
      keepsDownload = mark.size() > 0 && hasDownload(remote, part);
      if (!isKept && !keepsDownload) removeFolder(part);
    });
    kj::Vector<kj::String> leftOut;
    Warn warnAndKeep = [&](kj::StringPtr sentence) {
      leftOut.add(kj::str(sentence));
      warn(sentence);
    };
    importDataset(
        config, configs::environment("RUNNER_DATASETS"), remote, part, interruptible, warnAndKeep);
    writeLeftOut(part, leftOut);
    for (auto name: config.dataset->source->downloads) {
      ::unlink(kj::str(part, "/", name).cStr());
    }
    complete(part);
    for (auto& file: remote) removeFolder(kj::str(part, "/", downloadFolder(file)));
    ::unlink(kj::str(part, "/", BAD_IMAGES_FILE).cStr());
    KJ_SYSCALL(::unlink(kj::str(part, "/", UNFINISHED_FILE).cStr()));
    removeFolder(into);
    moveIntoPlace(part, into);
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { naming(part, into, import); })) {
    if (!keepsDownload) kj::throwFatalException(kj::mv(*e));
    configs::fail(e->getDescription(), ". What was downloaded stays in ", part,
        " for the next import of the same file");
  }
}

// Removes from `cache` what killed imports have left, for example downloads after Ctrl-C, apart
// from that of the folder `own`, whose lock the caller has. An import that still runs holds a lock.
// If there are downloads of `remote`, with other settings, `own` gets them.
void removeUnfinished(
    kj::StringPtr cache, kj::StringPtr own, kj::ArrayPtr<const RemoteFile> remote) {
  constexpr kj::StringPtr ENDING = ".part"_kj;
  auto filesystem = kj::newDiskFilesystem();
  auto folder = filesystem->getRoot().openSubdir(filesystem->getCurrentPath().evalNative(cache));
  for (auto& name: folder->listNames()) {
    if (!name.endsWith(ENDING) || name == kj::str(own, ENDING)) continue;
    auto path = kj::str(cache, "/", name);
    auto lockPath = kj::str(path.slice(0, path.size() - ENDING.size()), ".lock");
    int fd = ::open(lockPath.cStr(), O_RDWR | O_CLOEXEC);
    if (fd < 0) continue;
    kj::AutoCloseFd owned(fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) continue;
    bool isUseful = hasDownload(remote, path);
    if (isUseful && ::rename(path.cStr(), kj::str(cache, "/", own, ENDING).cStr()) == 0) continue;
    // A folder that cannot be removed, for example another user's, takes room but does no other
    // harm.
    kj::runCatchingExceptions([&]() { removeFolder(path); });
  }
}

bool isPacked(kj::StringPtr folder) {
  return hasFile(folder, TRAINING_FILE) && hasFile(folder, VALIDATION_FILE);
}

// Where the records of `config` are in the cache.
struct CachePlace {
  RemoteFiles remote;  // the files at its addresses
  kj::String records;  // as cacheName() names them
  kj::String folder;
};

CachePlace placeInCache(const DataConfig& config, RemoteFiles remote) {
  auto records = cacheName(config, remote);
  auto folder = kj::str(configs::cacheFolder(), "/", records);
  return {kj::mv(remote), kj::mv(records), kj::mv(folder)};
}

// Returns that place without asking a server. Null if this machine never asked.
kj::Maybe<CachePlace> knownPlace(const DataConfig& config) {
  KJ_IF_MAYBE(remote, keptFiles(config)) return placeInCache(config, kj::mv(*remote));
  return nullptr;
}

// Asks the servers, if there are any, and keeps what they say.
CachePlace askForPlace(const DataConfig& config, Progress& progress) {
  auto remote = lookUpFiles(config, progress);
  makeFolders(config, configs::cacheFolder());
  keepFiles(remote);
  return placeInCache(config, kj::mv(remote));
}

// Returns the folder with the databases of `config`. Makes it if necessary.
kj::String folderOf(const DataConfig& config, Progress& progress, Warn& warn) {
  KJ_IF_MAYBE(copy, config.copy) return kj::str(*copy);
  // Also if the import is in the cache: a mistyped source must not lead to training on other files.
  requireSourcePlace(config);
  KJ_IF_MAYBE(source, config.source) {
    if (isPacked(*source)) {
      KJ_IF_MAYBE(own, config.validationSource) {
        configs::fail(*source, " has packed validation records already, so the images of ", *own,
            " would not be used. Leave ", config.names.validationSource, " out");
      }
      return kj::str(*source);
    }
    if (hasFile(*source, TRAINING_FILE) || hasFile(*source, VALIDATION_FILE)) {
      configs::fail("the folder of packed records ", *source, " has no ",
          hasFile(*source, TRAINING_FILE) ? VALIDATION_FILE : TRAINING_FILE,
          ". Write it again with pack_records");
    }
  }
  auto known = knownPlace(config);
  KJ_IF_MAYBE(place, known) {
    if (isPacked(place->folder)) return kj::mv(place->folder);
    // The file there may have changed.
    if (place->remote.size() > 0) known = nullptr;
  }
  if (known == nullptr) known = askForPlace(config, progress);
  auto& place = KJ_ASSERT_NONNULL(known);
  auto cache = configs::cacheFolder();
  makeFolders(config, cache);
  auto locked = lock(kj::str(place.folder, ".lock"), progress);
  if (!isPacked(place.folder)) {
    removeUnfinished(cache, place.records, place.remote);
    importInto(config, place.remote, place.records, place.folder, false, progress, warn,
        [](kj::StringPtr) {});
  }
  return kj::mv(place.folder);
}

// Returns the shape of the first record that can be read. All records have its channels.
ImageShape someShape(const RecordDb& db, const DataConfig& config) {
  auto reader = RecordReader::open(db);
  for (uint64_t i = 0; i < db.count(); ++i) {
    kj::Maybe<ImageShape> shape;
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { shape = reader->read(i).shape; })) {
      if (config.onBadRecord == BadRecordPolicy::FAIL) {
        configs::fail(e->getDescription(), ", or ", config.names.skip);
      }
    }
    KJ_IF_MAYBE(found, shape) return *found;
  }
  configs::fail("no record of ", db.path(), " can be read");
}

// Checks that records, which may have been packed by another program, have the short side that
// `config` says. If images have many shapes, it checks a sample, because reading all records of a
// large database takes minutes.
void checkShortSide(const DataConfig& config, kj::StringPtr folder, const RecordDb& db) {
  constexpr uint64_t SAMPLES = 100;
  uint least = kj::maxValue, most = 0;
  auto add = [&](ImageShape shape) {
    auto side = kj::min(shape.height, shape.width);
    least = kj::min(least, side);
    most = kj::max(most, side);
  };
  KJ_IF_MAYBE(shape, db.shape()) {
    add(*shape);
  } else {
    auto reader = RecordReader::open(db);
    auto samples = kj::min(SAMPLES, db.count());
    for (uint64_t i = 0; i < samples; ++i) {
      // A bad record is reported later, by the code that reads all of them.
      kj::runCatchingExceptions([&]() { add(reader->read(i * db.count() / samples).shape); });
    }
  }
  auto wanted = config.resizeShortSide;
  if (least > most || (least == wanted && most == wanted)) return;
  if (least == most) {
    configs::fail("the records in ", folder, " were packed with a short side of ", least,
        " pixels, not ", wanted, ". Set ", config.names.resize, " to that size, or leave it out");
  }
  configs::fail("the records in ", folder, " were packed without a common short side: they have ",
      least, " to ", most, " pixels, not ", wanted, ". Leave ", config.names.resize,
      " out, or pack them again with --resize ", wanted);
}

// Returns the place by which the user knows the records.
kj::String placeOf(const DataConfig& config) {
  KJ_IF_MAYBE(source, config.source) {
    return isAddress(*source) ? shownAddress(*source) : kj::str(*source);
  }
  return kj::str("the data set ", config.dataset->name);
}

class CachedDataset final: public Dataset {
public:
  CachedDataset(const DataConfig& config, kj::StringPtr folder, Progress& progress, Warn& warn)
      : trainingDb(RecordDb::open(kj::str(folder, "/", TRAINING_FILE))),
        validationDb(RecordDb::open(kj::str(folder, "/", VALIDATION_FILE))),
        ownFolder(kj::str(folder)),
        stored(commonShape()),
        batch(batchShapeIn(config, folder)) {
    if (!config.augment.meanImage) return;
    KJ_IF_MAYBE(shape, stored) {
      mean = loadMeanImage(config, *trainingDb, folder, *shape, progress, warn);
    } else {
      configs::fail("there is no mean image of ", placeOf(config),
          ": its images differ in shape. Give data.augment.mean as one number per channel");
    }
  }

  kj::StringPtr folder() const override { return ownFolder; }
  const RecordDb& training() const override { return *trainingDb; }
  const RecordDb& validation() const override { return *validationDb; }
  uint classes() const override { return kj::max(trainingDb->classes(), validationDb->classes()); }
  kj::Array<kj::String> classNames() const override { return io::classNamesOf(*trainingDb); }
  kj::Maybe<ImageShape> storedShape() const override { return stored; }
  ImageShape batchShape() const override { return batch; }
  kj::ArrayPtr<const float> meanImage() const override { return mean; }
  kj::Array<kj::String> leftOut() const override { return readLeftOut(ownFolder); }

private:
  kj::Maybe<ImageShape> commonShape() const {
    auto training = trainingDb->shape();
    if (validationDb->count() == 0) return training;
    KJ_IF_MAYBE(t, training) {
      KJ_IF_MAYBE(v, validationDb->shape()) {
        if (*t == *v) return *t;
      }
    }
    return nullptr;
  }

  ImageShape batchShapeIn(const DataConfig& config, kj::StringPtr folder) const {
    if (trainingDb->count() == 0) {
      configs::fail("there is no training record in ", placeOf(config));
    }
    KJ_IF_MAYBE(shape, stored) {
      auto result = batchShapeOf(config.augment, *shape);
      uint padding = 2 * config.augment.pad;
      bool reaches =
          result.height <= shape->height + padding && result.width <= shape->width + padding;
      if (!reaches && !config.augment.resizes()) {
        configs::fail("data.augment.crop = ", config.augment.crop, " is larger than the images of ",
            placeOf(config), ", which have ", sizeOf(*shape), " pixels",
            padding > 0 ? " without data.augment.pad" : "");
      }
      return result;
    }
    if (config.augment.crop == 0) {
      configs::fail("images in ", placeOf(config), " have different sizes. Set data.augment.crop");
    }
    return batchShapeOf(config.augment, someShape(*trainingDb, config));
  }

  kj::Own<RecordDb> trainingDb;
  kj::Own<RecordDb> validationDb;
  const kj::String ownFolder;
  kj::Maybe<ImageShape> stored;
  ImageShape batch;
  kj::Array<float> mean;
};

}  // namespace

kj::Own<Dataset> openDataset(const DataConfig& config, Progress progress, Warn warn) {
  auto folder = folderOf(config, progress, warn);
  auto dataset = kj::heap<CachedDataset>(config, folder, progress, warn);
  // A folder of packed records may hold any data set.
  KJ_IF_MAYBE(facts, factsOf(config)) {
    for (auto db: {&dataset->training(), &dataset->validation()}) {
      KJ_IF_MAYBE(name, db->dataset()) {
        if (*name == config.dataset->name) continue;
        configs::fail("the records in ", folder, " are those of the data set ", *name, ", not ",
            config.dataset->name, ". Set ", config.names.dataset, " to \"", *name, "\", or ",
            config.names.source, " to other records");
      }
    }
    auto shape = dataset->storedShape().orDefault(ImageShape{0, 0, 0});
    if (!(shape == facts->shape) || dataset->classes() != facts->classes ||
        dataset->training().count() != facts->trainingRecords ||
        dataset->validation().count() != facts->validationRecords) {
      configs::fail("the records in ", folder, " are not those of the data set ",
          config.dataset->name, ": ", dataset->training().count(), " + ",
          dataset->validation().count(), " images of ", shape.channels, "×", shape.height, "×",
          shape.width, " in ", dataset->classes(),
          " classes. Set data.dataset or data.resize_short_side to what was packed");
    }
  }
  KJ_IF_MAYBE(source, config.source) {
    bool isPackedThere = folder == *source;
    if (isPackedThere && config.resizeShortSide > 0) {
      checkShortSide(config, folder, dataset->training());
    }
  }
  return dataset;
}

kj::Array<kj::String> classNamesOf(const RecordDb& db) {
  auto kept = db.classNames();
  KJ_IF_MAYBE(dataset, db.dataset()) {
    for (auto& row: DATASETS) {
      if (kept.size() == 0 && *dataset == row.name) return classNamesOf(row);
    }
  }
  return KJ_MAP(name, kept) {
    return kj::str(name);
  };
}

void lookForChanges(const DataConfig& config, Progress progress, Warn warn) {
  KJ_IF_MAYBE(kept, keptFiles(config)) {
    bool isLocal = kept->size() == 0;
    if (isLocal) return;
  }
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { askForPlace(config, progress); })) {
    KJ_IF_MAYBE(place, knownPlace(config)) {
      if (isPacked(place->folder)) {
        warn(kj::str(e->getDescription(), ". The records that were imported from there are used"));
        return;
      }
    }
    kj::throwFatalException(kj::mv(*e));
  }
}

bool isImporting() {
  return imports > 0;
}

void requireSource(const DataConfig& config, configs::Diagnostics& diagnostics) {
  auto& kind = *config.dataset;
  if (kind.source->isFixed() || config.source != nullptr) return;
  kj::String where;
  KJ_IF_MAYBE(datasets, configs::environment("RUNNER_DATASETS")) {
    auto folder = kj::str(*datasets, "/", kind.source->folder);
    if (pathKind(folder) == PathKind::FOLDER) return;
    where = kj::str(", and RUNNER_DATASETS has no folder ", folder);
  }
  diagnostics.error(config.datasetSpan,
      kj::str("data set `", kind.name, "` needs a `source`", where),
      kj::str("set ", config.names.source,
          kind.source->format == DatasetSource::IDX ? " to a folder with the four files"
                                                    : " to a folder or an archive of images"));
}

void packDataset(const DataConfig& config, kj::StringPtr into, Progress progress, Warn warn) {
  auto folder = withoutSlash(into);
  auto refuseIfThere = [&]() {
    auto name = baseName(folder);
    if (name == "." || name == "..") configs::fail(folder, " cannot be the name of a new folder");
    KJ_IF_MAYBE(why, whyNeither(folder)) {
      configs::fail("cannot write records to ", folder, " (", *why, "). Name a new folder");
    }
    if (pathKind(folder) != PathKind::NOTHING) {
      configs::fail(folder, " exists already. Name a new folder");
    }
  };
  refuseIfThere();
  auto remote = lookUpFiles(config, progress);
  auto records = cacheName(config, remote);
  importInto(config, remote, records, folder, true, progress, warn, [&](kj::StringPtr part) {
    auto training = RecordDb::open(kj::str(part, "/", TRAINING_FILE));
    KJ_IF_MAYBE(shape, training->shape()) {
      // The mean image is part of the folder's purpose. Therefore a failure ends the command.
      Warn refuse = [](kj::StringPtr sentence) { configs::fail(sentence); };
      loadMeanImage(config, *training, part, *shape, progress, refuse);
    }
    // Another process may have made the folder meanwhile.
    refuseIfThere();
  });
}

kj::Maybe<DatasetFacts> factsOf(const DataConfig& config) {
  auto& source = *config.dataset->source;
  if (!source.isFixed()) return nullptr;
  auto shape = source.shape;
  if (config.resizeShortSide > 0) shape = resizedShape(shape, config.resizeShortSide);
  return DatasetFacts{shape, source.classes, source.trainingRecords, source.validationRecords,
      nullptr, classNamesOf(*config.dataset)};
}

bool areRecordsKnown(const DataConfig& config) {
  KJ_IF_MAYBE(source, config.source) {
    if (isPacked(*source)) return false;
  }
  return config.dataset->source->isFixed();
}

kj::String recordsSha256(const DataConfig& config) {
  auto dataset = openDataset(config, [](kj::StringPtr, uint64_t, uint64_t) {});
  return recordsSha256(dataset->training(), dataset->validation());
}

kj::String recordsSha256(const RecordDb& training, const RecordDb& validation) {
  Sha256 sum;
  sum.update(training.digest());
  sum.update(validation.digest());
  return kj::encodeHex(sum.finish());
}

}  // namespace io
