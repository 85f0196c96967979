#include "io/datasets/datasets.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/encoding.h>
#include <kj/io.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "configs/language/environment.h"
#include "configs/language/failure.h"
#include "io/checksum.h"
#include "io/datasets/import.h"
#include "io/datasets/import_folder.h"
#include "io/datasets/import_into.h"
#include "io/datasets/remote_images.h"
#include "io/datasets/sources.h"
#include "io/images/augment.h"
#include "io/images/mean_file.h"
#include "io/images/resizer.h"
#include "io/paths.h"

namespace io {

namespace {

// Size and time of the last change. If they differ, the file has changed.
kj::String identityOf(kj::StringPtr path) {
  struct stat status;
  if (::stat(path.cStr(), &status) != 0) {
    configs::fail("cannot access ", path, ": ", strerror(errno));
  }
  return kj::str(status.st_size, " ", status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec);
}

bool isReadable(kj::StringPtr path) {
  return ::faccessat(AT_FDCWD, path.cStr(), R_OK, AT_EACCESS) == 0;
}

// Returns the absolute form of `path`, without links. The first `/` is left out, so that imports of
// earlier versions keep their names.
kj::String realPath(kj::StringPtr path) {
  auto real = ::realpath(path.cStr(), nullptr);
  if (real == nullptr) configs::fail("cannot access ", path, ": ", strerror(errno));
  KJ_DEFER(::free(real));
  return kj::str(real + 1);
}

// The checksum of all that the records of a data set depend on.
class RecordsDigest {
public:
  // `remote` are the files at the addresses of `config`.
  RecordsDigest(const DataConfig& config, kj::ArrayPtr<const RemoteFile> remote)
      : config(config), remote(remote) {}

  void add(kj::StringPtr line) {
    sum.update(line.asBytes());
    sum.update(kj::StringPtr("\n").asBytes());
  }

  // Adds the path, too, because files that were unpacked or copied together may have the same size
  // and time.
  void addFile(kj::StringPtr path) {
    add(realPath(path));
    add(identityOf(path));
  }

  void addPlace(const ImagePlace& place) {
    bool isRemote = isAddress(place.images);
    bool isFolder = !isRemote && pathKind(place.images) == PathKind::FOLDER;
    if (isRemote) {
      add(place.images);
      add(identityOf(remote, place.images));
    } else if (isFolder) {
      add(realPath(place.images));
    } else {
      addFile(place.images);
    }
    KJ_IF_MAYBE(labels, place.labels) {
      add(place.isChosen ? "chosen" : "");
      addFile(*labels);
    }
    KJ_IF_MAYBE(kit, place.kit) addFile(*kit);
    if (isFolder) addImagesIn(place.images);
  }

  // Returns the digits. To be called once. 64 bits are enough: no two data sets of one user will
  // have the same.
  kj::String finish() { return kj::heapString(kj::encodeHex(sum.finish()).slice(0, 16)); }

private:
  // Adds only the files that an import reads. The folder may also hold the cache and the folders of
  // runs, which change all the time.
  void addImagesIn(kj::StringPtr folder) {
    auto below = allBelow(folder);
    for (auto& name: below.files) {
      if (!isNamedForImport(name)) continue;
      auto path = kj::str(folder, "/", name);
      add(name);
      add(identityOf(path));
      // Permissions change neither size nor time. An import leaves out what it may not read.
      bool isLeftOut = config.onBadRecord == BadRecordPolicy::SKIP && !isReadable(path);
      if (isLeftOut) add("unreadable");
    }
    // Images may be missing because of these.
    for (auto list: {&below.notRegular, &below.unreadable}) {
      add(kj::str(list->size()));
      for (auto& name: *list) add(name);
    }
  }

  const DataConfig& config;
  kj::ArrayPtr<const RemoteFile> remote;
  Sha256 sum;
};

// Returns the name of the folder in the cache. It changes whenever the records would change.
// `remote` are the files at the addresses of `config`.
kj::String cacheName(const DataConfig& config, kj::ArrayPtr<const RemoteFile> remote) {
  RecordsDigest digest(config, remote);
  auto& source = *config.dataset->source;
  // Increase this number when the import of the same files gives other records or other warnings.
  digest.add(source.format == DatasetSource::FOLDER ? "import 10" : "import 1");
  auto encoding = configs::nameIn(ENCODINGS, config.encoding);
  digest.add(kj::str(config.dataset->name, " ", encoding, " ", config.resizeShortSide));
  if (config.classes.size() > 0) {
    digest.add(kj::str("classes ", kj::strArray(config.classes, "\n")));
  }
  for (auto& file: source.files) {
    digest.add(file.sha256 == nullptr ? kj::str(file.size) : kj::str(file.sha256));
  }
  auto datasets = configs::environment("RUNNER_DATASETS");
  if (source.isFixed() && !source.isChecked()) {
    // Nothing else distinguishes these files from others.
    KJ_IF_MAYBE(place, config.source) digest.add(*place);
    for (auto& path: findLocalFiles(config, datasets)) digest.addFile(path);
  }
  if (!source.isFixed() && source.format == DatasetSource::IDX) {
    for (auto& path: findIdxFiles(config, datasets)) digest.addFile(path);
  }
  if (source.format == DatasetSource::FOLDER) {
    digest.add(config.onBadRecord == BadRecordPolicy::FAIL ? "fail" : "skip");
    digest.addPlace(findImages(config, datasets));
    KJ_IF_MAYBE(place, findValidationImages(config, datasets)) {
      digest.add("validation");
      digest.addPlace(*place);
    }
    KJ_IF_MAYBE(path, config.classNames) digest.addFile(*path);
  }
  return kj::str(config.dataset->name, "-", encoding, "-", digest.finish());
}

// Takes the lock of `path`, which lasts until the result is destroyed. The file stays until
// removeLock(). A lock of flock() belongs to the open file, and therefore also keeps threads of one
// process apart.
kj::AutoCloseFd lock(kj::StringPtr path, Progress& progress) {
  for (;;) {
    int fd = ::open(path.cStr(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
      configs::fail("cannot make ", path, ": ", strerror(errno),
          ". Set RUNNER_CACHE to a folder that can be written");
    }
    kj::AutoCloseFd owned(fd);
    // Without locks in the file system, nothing keeps processes apart.
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      progress("waiting for another process that imports the same data", 0, 0);
      KJ_SYSCALL(::flock(fd, LOCK_EX), path);
    }
    // The other process may have removed the file.
    if (isOpenedAt(fd, path)) return owned;
  }
}

bool isPacked(kj::StringPtr folder) {
  return hasFile(folder, TRAINING_FILE) && hasFile(folder, VALIDATION_FILE);
}

// Where the records of `config` are in the cache.
struct CachePlace {
  RemoteFiles remote;  // the files at its addresses
  kj::String records;  // by cacheName()
  kj::String folder;
};

CachePlace placeInCache(const DataConfig& config, RemoteFiles remote) {
  auto records = cacheName(config, remote);
  auto folder = kj::str(configs::cacheFolder(), "/", records);
  return {kj::mv(remote), kj::mv(records), kj::mv(folder)};
}

// Returns that place without asking a server. Null if this machine has never asked.
kj::Maybe<CachePlace> knownPlace(const DataConfig& config) {
  KJ_IF_MAYBE(remote, keptFiles(config)) return placeInCache(config, kj::mv(*remote));
  return nullptr;
}

// Asks the servers, if there are any, and stores their answers.
CachePlace askForPlace(const DataConfig& config, Progress& progress) {
  auto remote = lookUpFiles(config, progress);
  makeFolders(config, configs::cacheFolder());
  keepFiles(remote);
  return placeInCache(config, kj::mv(remote));
}

// Refuses files with labels or names of classes. The packed records in `folder` already have labels
// and names.
void requireNoLabelFiles(const DataConfig& config, kj::StringPtr folder) {
  auto require = [&](const kj::Maybe<kj::String>& file, kj::StringPtr key, kj::StringPtr purpose) {
    if (file == nullptr) return;
    configs::fail("the records in ", folder, " are packed already, so `", key, "` cannot ", purpose,
        ". Leave data.", key, " out, or set data.source to the original images");
  };
  require(config.labels, "labels", "choose among them or label them");
  require(config.validationLabels, "validation_labels", "choose among them or label them");
  require(config.classNames, "class_names", "name their classes");
}

// Returns the folder with the databases of `config`. Makes it if necessary.
kj::String folderOf(const DataConfig& config, Progress& progress, Warn& warn) {
  KJ_IF_MAYBE(copy, config.copy) return kj::str(*copy);
  // Checks this even if the import is in the cache: a mistyped source must not lead to training on
  // other files.
  requireSourcePlace(config);
  KJ_IF_MAYBE(source, config.source) {
    if (isPacked(*source)) {
      if (config.classes.size() > 0) {
        configs::fail("the records in ", *source,
            " are packed already, so `classes` cannot choose among them. Leave data.classes "
            "out, or set data.source to the original images");
      }
      requireNoLabelFiles(config, *source);
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
  auto lockPath = kj::str(place.folder, LOCK_ENDING);
  auto locked = lock(lockPath, progress);
  if (!isPacked(place.folder)) {
    KJ_ON_SCOPE_FAILURE(removeLock(lockPath));
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
  configs::fail("no record of ", db.path(), " can be read. `runner data verify` names the causes");
}

// Checks that records, which another program may have packed, have the short side that `config`
// asks for. If images have many shapes, it checks a sample, because reading all records of a large
// database takes minutes.
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

// Returns the place of the records that the user knows.
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
      auto& augment = config.augment;
      if (augment.resizes() && shape->channels > Resizer::VALUES) {
        configs::fail("data.augment.crop_area resizes images of at most ", Resizer::VALUES,
            " channels, but those of ", placeOf(config), " have ", shape->channels);
      }
      auto result = batchShapeOf(augment, *shape);
      uint side = kj::min(result.height, result.width);
      if (augment.cutout >= side) {
        configs::fail("data.augment.cutout = ", augment.cutout, " must be smaller than the images ",
            "of a batch, which have ", sizeOf(result), " pixels. Choose a smaller square");
      }
      uint padding = 2 * config.augment.pad;
      bool reaches =
          result.height <= shape->height + padding && result.width <= shape->width + padding;
      if (!reaches && !config.augment.resizes()) {
        configs::fail("data.augment.crop = ", config.augment.crop, " is larger than the images of ",
            placeOf(config), ", which have ", sizeOf(*shape), " pixels",
            padding > 0 ? " without data.augment.pad" : "", ". Set a smaller crop");
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

void requireSourcesHere(const DataConfig& config, configs::Diagnostics& diagnostics) {
  auto require = [&](const kj::Maybe<kj::String>& source, const configs::Span& span,
                     kj::StringPtr setting) {
    KJ_IF_MAYBE(given, source) {
      if (given->size() == 0 || isAddress(*given)) return;
      auto path = withoutSlash(*given);
      // An import says why something else cannot be read.
      bool isNothing = pathKind(path) == PathKind::NOTHING && whyUnreadable(path) == nullptr &&
                       whyNeither(path) == nullptr;
      if (!isNothing) return;
      diagnostics.error(span, kj::str("there is nothing at ", path),
          kj::str("set ", setting, " to a folder or an archive",
              config.dataset->source->isFixed() ? ", or leave it out" : " of images"));
    }
  };
  require(config.source, config.sourceSpan, config.names.source);
  require(config.validationSource, config.validationSourceSpan, config.names.validationSource);
}

void packDataset(const DataConfig& config, kj::StringPtr into, Progress progress, Warn warn) {
  auto folder = withoutSlash(into);
  for (auto source: {&config.source, &config.validationSource}) {
    KJ_IF_MAYBE(path, *source) {
      if (pathKind(*path) == PathKind::FOLDER && isBelow(folder, withoutSlash(*path))) {
        configs::fail(folder, " lies in ", *path,
            ", so its files would be taken for images. Name a folder elsewhere");
      }
    }
  }
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
      // The user asked for the mean image in this folder. Therefore a failure ends the command.
      Warn refuse = [](kj::StringPtr sentence) { configs::fail(sentence); };
      loadMeanImage(config, *training, part, *shape, progress, refuse);
    }
    // Another process may have made the folder meanwhile.
    refuseIfThere();
  });
}

kj::Maybe<DatasetFacts> factsOf(const DataConfig& config) {
  auto& source = *config.dataset->source;
  if (!source.isFixed() || config.classes.size() > 0) return nullptr;
  auto shape = source.shape;
  if (config.resizeShortSide > 0) shape = resizedShape(shape, config.resizeShortSide);
  return DatasetFacts{shape, source.classes, source.trainingRecords, source.validationRecords,
      nullptr, classNamesOf(*config.dataset)};
}

bool areRecordsKnown(const DataConfig& config) {
  KJ_IF_MAYBE(source, config.source) {
    if (isPacked(*source)) return false;
  }
  return config.dataset->source->isChecked();
}

kj::String recordsSha256(const DataConfig& config) {
  auto dataset = openDataset(config, unheard());
  auto records = recordsSha256(dataset->training(), dataset->validation());
  if (config.classNames == nullptr) return records;
  auto names = kj::strArray(dataset->classNames(), "\n");
  return sha256Hex(kj::str(records, '\n', names).asBytes());
}

kj::String recordsSha256(const RecordDb& training, const RecordDb& validation) {
  Sha256 sum;
  sum.update(training.digest());
  sum.update(validation.digest());
  return kj::encodeHex(sum.finish());
}

}  // namespace io
