#include "io/datasets/import_folder.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "configs/language/failure.h"
#include "io/datasets/archives.h"
#include "io/datasets/ilsvrc.h"
#include "io/datasets/label_checks.h"
#include "io/datasets/labels.h"
#include "io/datasets/name_forms.h"
#include "io/datasets/nested_archives.h"
#include "io/images/kept_image.h"
#include "io/left_out.h"
#include "io/paths.h"

namespace io {

namespace {

// One image in HELD_OUT is for validation: images HELD_OUT-1, 2·HELD_OUT-1, …
constexpr uint64_t HELD_OUT = 10;
constexpr size_t IMAGE_FILE_BYTES_MAX = size_t(1) << 28;
constexpr uint64_t FILES_PER_REPORT = 16;

// Returns the part of a path up to the first dot of its last name: the common part of the names of
// one sample's files in WebDataset's shards.
kj::String sampleOf(kj::StringPtr path) {
  auto name = baseName(path);
  size_t folder = path.size() - name.size();
  return kj::heapString(path.slice(0, folder + name.findFirst('.').orDefault(name.size())));
}

// The ending of a file that holds the label of its sample (WebDataset).
constexpr kj::StringPtr CLASS_ENDING = ".cls"_kj;
constexpr size_t CLASS_FILE_BYTES_MAX = 64;

class FolderImport {
public:
  // `setting` is the name, in messages, of the setting that names `place`.
  FolderImport(const DataConfig& config, const ImagePlace& place, kj::StringPtr setting,
      BadImages& badImages, Progress& progress, Warn& warn)
      : config(config),
        images(place.images),
        place(place),
        setting(setting),
        isArchive(pathKind(place.images) == PathKind::FILE),
        badImages(badImages),
        progress(progress),
        warn(warn) {}

  // Before list(): the images are for validation, and belong to the classes of `training`, which
  // has been listed.
  void useClassesOf(const FolderImport& training) { classesFrom = training; }
  // Before list(): `labels`, which must outlive it, names images of the same place for another use.
  void shareWith(const Labels& labels) { otherLabels = &labels; }
  const Labels& ownLabels() const { return labels; }
  // Before list(): `images`, which must outlive it, is the place of the images for another use. An
  // archive there is not read for this one, too.
  void keepApartFrom(kj::StringPtr images) { otherImages = images; }
  // Before write(): the number of the first image that is written, and of the first one at all.
  // After it: those of the next ones.
  uint64_t id = 0, number = 0;
  // After list(): the names of the classes by label, or none.
  kj::Array<kj::String> classNames;

  // After list(): the folders that are classes, by label. Empty if classes are not folders.
  kj::Array<kj::String> foldersIfClasses() const {
    return labelsFile == nullptr ? classFolders() : kj::Array<kj::String>();
  }

  // After list(): the numbers that label the images.
  Numbers numbers() const {
    Numbers numbers;
    for (auto& entry: labels) {
      auto number = entry.value.number;
      numbers.all.findOrCreate(number, [&]() { return number; });
    }
    numbers.file = labelsFile.map([](const kj::String& file) { return kj::str(file); });
    return numbers;
  }

  // Finds all images and labels them: by the labels file of the user, else by the source itself,
  // else by the labels.tsv of the archive, else by their folders. Warns about everything else that
  // is there. Checks everything that can be checked without the content of the images.
  void list() {
    KJ_IF_MAYBE(path, place.labels) {
      take(readLabels(*path));
      labelsFile = kj::str(*path);
    }
    auto members = listMembers();
    if (entries.size() == 0 && archives.count() > 0) {
      otherFiles = {};
      archives = {};
      isNested = true;
      KJ_IF_MAYBE(other, otherImages) refuseArchiveInside(images, *other);
      members = listMembers();
    }
    checkReadable(*members);
    labelBySamples();
    if (labelsFile == nullptr) {
      auto paths = KJ_MAP(entry, entries) {
        return kj::str(entry.key);
      };
      if (paths.size() > 0) labelByFolders(kj::mv(paths));
    } else if (place.isChosen) {
      dropUnlabelled();
    } else {
      checkAllLabelled();
    }
    tellPassedOver(*members);
    if (entries.size() == 0) refuseWithoutImage();
    checkNoneMissing();
  }

  // Writes every tenth image into `validation`, if there is one, and the others into `training`.
  void write(RecordWriter& training, kj::Maybe<RecordWriter&> validation) {
    auto members = open();
    ImageKeeper keeper(config);
    auto writeNext = [&]() {
      KJ_IF_MAYBE(file, keeper.take()) {
        writeFile(*file, training, validation);
        return true;
      }
      return false;
    };
    for (;;) {
      kj::StringPtr path;
      KJ_IF_MAYBE(p, members->next()) {
        path = *p;
      } else {
        break;
      }
      if (!isNamedAsImage(path) || !isLast(path)) continue;
      ImageFile file;
      file.path = kj::str(path);
      auto& label = KJ_ASSERT_NONNULL(labelOf(path));
      ++met;
      if (hasKept(training, validation)) {
        // The number of an image's record depends on the images before it.
        while (writeNext()) {
        }
        if (isKept(path, label.number, training, validation)) continue;
      }
      file.label = label.number;
      file.problem =
          kj::runCatchingExceptions([&]() { file.bytes = members->read(IMAGE_FILE_BYTES_MAX); });
      while (keeper.isFull()) writeNext();
      keeper.add(kj::mv(file));
    }
    while (writeNext()) {
    }
    progress("importing, images", done, labels.size());
    tellOfBadImages();
    checkAllMet();
  }

private:
  struct Class {
    kj::String name;  // its folder, or its number
    uint64_t good = 0;
  };

  Class& classOf(kj::StringPtr path, uint32_t label) {
    return classes.findOrCreate(label, [&]() {
      auto name = labelsFile == nullptr ? folderName(path) : kj::str(label);
      return kj::HashMap<uint32_t, Class>::Entry{label, {kj::mv(name)}};
    });
  }

  kj::Own<Members> open() { return isNested ? openNested(images) : Members::open(images); }

  void take(LabelList list) {
    labels = kj::mv(list.labels);
    classNames = kj::mv(list.classNames);
  }

  void labelByFolders(kj::Array<kj::String> paths) {
    KJ_IF_MAYBE(training, classesFrom) {
      auto folders = training->classFolders();
      KJ_IF_MAYBE(kit, place.kit) {
        labels = labelsByKit(readIlsvrcKit(*kit), images, kj::mv(paths), folders);
      } else {
        labels = labelsByKnownFolder(images, kj::mv(paths), folders);
      }
      return;
    }
    labels = labelsByFolder(config, images, kj::mv(paths));
    classNames = namesOfFolders(classFolders());
    KJ_IF_MAYBE(kit, place.kit) {
      auto known = readIlsvrcKit(*kit);
      for (auto& name: classNames) {
        KJ_IF_MAYBE(words, known.names.find(name)) name = kj::str(*words);
      }
    }
  }

  kj::Own<Members> listMembers() {
    auto members = open();
    auto what = kj::str("listing ", baseName(images));
    for (;;) {
      KJ_IF_MAYBE(path, members->next()) {
        note(*members, *path);
      } else {
        break;
      }
      progress(what, members->done(), members->total());
    }
    return members;
  }

  // Labels the images by the files of their samples, if there are any.
  void labelBySamples() {
    auto tellOf = [&](const LeftOut& which, kj::StringPtr what) {
      if (which.count() == 0) return;
      warn(kj::str(counted(which.count(), "sample", "samples"), " of ", images,
          which.count() == 1 ? " has " : " have ", what, ": ", which.names()));
    };
    KJ_IF_MAYBE(file, labelsFile) {
      LeftOut unused;
      for (auto& sample: samples) unused.add(sample.key);
      auto why = kj::str("because the labels come from ", *file);
      tellOf(unused, kj::str("unused ", CLASS_ENDING, " files, ", why));
      return;
    }
    if (samples.size() == 0) return;
    kj::HashMap<kj::String, uint> imagesOf;  // of each sample: how many
    for (auto& entry: entries) {
      auto sample = sampleOf(entry.key);
      KJ_IF_MAYBE(label, samples.find(sample)) {
        labels.insert(kj::str(entry.key), Label{*label});
        imagesOf.upsert(kj::mv(sample), 1, [](uint& count, uint) { ++count; });
      }
    }
    LeftOut without, several;
    for (auto& sample: samples) {
      uint count = imagesOf.find(sample.key).orDefault(0);
      if (count == 0) without.add(sample.key);
      if (count > 1) several.add(sample.key);
    }
    tellOf(without, "no image");
    tellOf(several, "several images, each of which is used");
    labelsFile = kj::str("its ", CLASS_ENDING, " files");
  }

  // Leaves out the images that the user's list does not name.
  void dropUnlabelled() {
    kj::Vector<kj::String> dropped;
    for (auto& entry: entries) {
      if (labelOf(entry.key) == nullptr) dropped.add(kj::str(entry.key));
    }
    for (auto& path: dropped) {
      entries.erase(path);
      bool isUsed = otherLabels != nullptr && otherLabels->find(path) != nullptr;
      if (!isUsed) unlisted.add(path);
    }
    if (entries.size() == 0) refuseList(dropped);
  }

  // Returns the folders that are classes, by label.
  kj::Array<kj::String> classFolders() const {
    KJ_IF_MAYBE(file, labelsFile) {
      configs::fail("the classes of the training images are those of ", *file,
          ". Give the validation images a file of labels, too");
    }
    kj::Vector<kj::String> folders;
    for (auto& entry: labels) {
      auto label = entry.value.number;
      if (folders.size() <= label) folders.resize(label + 1);
      folders[label] = folderName(entry.key);
    }
    return folders.releaseAsArray();
  }

  void checkAllLabelled() {
    LeftOut without;
    for (auto& entry: entries) {
      if (labelOf(entry.key) == nullptr) without.add(entry.key);
    }
    if (without.count() == 0) return;
    auto& file = KJ_ASSERT_NONNULL(labelsFile);
    if (without.count() == 1) {
      configs::fail(without.names(), " of ", images, " has no label in ", file,
          ". Add its label, or remove the image");
    }
    configs::fail(without.count(), " of the ", entries.size(), " images of ", images,
        " have no label in ", file, ": ", without.names(),
        ". Add their labels, or remove the images");
  }

  void note(Members& members, kj::StringPtr path) {
    if (isNamedAsImage(path)) {
      entries.upsert(kj::str(path), 1, [&](uint& count, uint) {
        if (++count == 2) repeated.add(path);
      });
      KJ_IF_MAYBE(label, members.label()) {
        if (place.labels != nullptr) return;
        labels.upsert(kj::str(path), Label{*label}, [](Label&, Label&&) {});
        labelsFile = kj::str(images);
      }
      return;
    }
    if (path.endsWith(CLASS_ENDING)) return readSampleLabel(members, path);
    if (isLabelsFile(path)) return;
    if (baseName(path) == LABELS_FILE && place.labels == nullptr && isArchive) {
      return readLabelsOf(members, path);
    }
    otherFiles.add(path);
    if (isNamedAsArchive(path)) archives.add(path);
  }

  // Whether the labels come from the file `path` of this folder.
  bool isLabelsFile(kj::StringPtr path) const {
    KJ_IF_MAYBE(labels, place.labels) {
      return !isArchive && baseName(path) == baseName(*labels) &&
             isBelow(*labels, kj::str(images, "/", path));
    }
    return false;
  }

  void readSampleLabel(Members& members, kj::StringPtr path) {
    auto name = kj::str(path, " of ", images);
    auto content = about(name, [&]() { return members.read(CLASS_FILE_BYTES_MAX); });
    auto text = content.asChars();
    while (text.size() > 0 && (text.back() == '\n' || text.back() == '\r')) {
      text = text.slice(0, text.size() - 1);
    }
    KJ_IF_MAYBE(label, parseLabel(text)) {
      samples.upsert(sampleOf(path), *label, [](uint32_t& last, uint32_t next) { last = next; });
    } else {
      configs::fail(printable(name), " holds ", printable(kj::heapString(text)),
          ", which is not a label from 0 to ", LABEL_MAX);
    }
  }

  // Reads the archive's member `path`. Its lines are relative to the folder that holds it, which
  // may be the one folder that was packed.
  void readLabelsOf(Members& members, kj::StringPtr path) {
    auto name = kj::str(path, " of ", images);
    auto called = kj::str("its ", path);
    KJ_IF_MAYBE(other, labelsFile) {
      // A later entry replaces an earlier one of the same name.
      if (*other != called)
        configs::fail(images, " has two label files, ", *other, " and ", called,
            ". Remove one of them, or unpack the archive and set ", setting,
            " to the right folder");
    }
    auto content = about(name, [&]() { return members.read(LABELS_FILE_BYTES_MAX); });
    take(parseLabels(
        name, content, kj::heapString(path.slice(0, path.size() - LABELS_FILE.size()))));
    labelsFile = kj::mv(called);
  }

  // Whether no later entry has the name `path`. Call it once for each entry.
  bool isLast(kj::StringPtr path) {
    KJ_IF_MAYBE(left, entries.find(path)) {
      if (*left > 0) return --*left == 0;
    } else if (place.isChosen && labelOf(path) == nullptr) {
      return false;
    }
    configs::fail(
        images, " was changed while it was imported: ", printable(path), " is new. Try again");
  }

  // Returns the label of an image. A file of labels may write the name in another of Unicode's
  // forms.
  kj::Maybe<Label&> labelOf(kj::StringPtr path) {
    KJ_IF_MAYBE(label, labels.find(path)) return *label;
    if (composedNames.size() == 0) {
      for (auto& entry: labels) {
        composedNames.upsert(
            composed(entry.key), entry.key, [](kj::StringPtr&, kj::StringPtr&&) {});
      }
    }
    KJ_IF_MAYBE(name, composedNames.find(composed(path))) return labels.find(*name);
    return nullptr;
  }

  static bool hasKept(const RecordWriter& training, kj::Maybe<RecordWriter&> validation) {
    KJ_IF_MAYBE(v, validation) {
      if (v->hasKept()) return true;
    }
    return training.hasKept();
  }

  // Whether the previous process has already written the next image, or left it out.
  bool isKept(kj::StringPtr path, uint32_t label, RecordWriter& training,
      kj::Maybe<RecordWriter&> validation) {
    KJ_IF_MAYBE(reason, badImages.find(number)) {
      classOf(path, label);
      leaveOut(path, *reason);
    } else if (writerOfNext(training, validation).takeKept(label, id, path)) {
      countWritten(path, label);
    } else {
      return false;
    }
    countDone();
    return true;
  }

  // Writes the image of a file. Leaves it out, with a warning, if it cannot be used.
  void writeFile(
      const ImageFile& file, RecordWriter& training, kj::Maybe<RecordWriter&> validation) {
    classOf(file.path, file.label);
    KJ_IF_MAYBE(e, file.problem) {
      if (config.onBadRecord == BadRecordPolicy::FAIL) {
        configs::fail("cannot import ", printable(file.path), " of ", images, ": it ",
            e->getDescription(), ". Repair or remove it, or ", config.names.skip);
      }
      badImages.add(number, e->getDescription());
      leaveOut(file.path, e->getDescription());
    }
    KJ_IF_MAYBE(kept, file.kept) {
      writerOfNext(training, validation)
          .add(file.label, id, kept->encoding, kept->shape, kept->bytes, file.path);
      countWritten(file.path, file.label);
    }
    countDone();
  }

  RecordWriter& writerOfNext(RecordWriter& training, kj::Maybe<RecordWriter&> validation) const {
    bool isHeldOut = good % HELD_OUT == HELD_OUT - 1;
    return isHeldOut ? validation.orDefault(training) : training;
  }

  void countWritten(kj::StringPtr path, uint32_t label) {
    ++id;
    ++good;
    ++classOf(path, label).good;
  }

  void countDone() {
    ++number;
    if (++done % FILES_PER_REPORT == 0) progress("importing, images", done, labels.size());
  }

  void leaveOut(kj::StringPtr path, kj::StringPtr why) {
    ++bad;
    warn(kj::str(printable(path), " ", why, "; left out (", config.names.skipped, ")"));
  }

  void tellPassedOver(const Members& members) {
    auto& others = members.notRegular();
    if (others.count() > 0) {
      warn(kj::str("left out ", counted(others.count(), "entry", "entries"), " of ", images,
          others.count() == 1 ? " that is not a regular file: " : " that are not regular files: ",
          others.names()));
    }
    if (otherFiles.count() > 0) {
      warn(kj::str("left out ", counted(otherFiles.count(), "file", "files"), " of ", images,
          " whose ", otherFiles.count() == 1 ? "name does" : "names do",
          " not end in .jpeg, .jpg or .png: ", otherFiles.names()));
    }
    auto& empty = members.empty();
    if (empty.count() > 0) {
      warn(kj::str("left out ", counted(empty.count(), "empty folder", "empty folders"), " of ",
          images, ": ", empty.names()));
    }
    if (unlisted.count() > 0) {
      warn(kj::str("left out ", counted(unlisted.count(), "image", "images"), " of ", images,
          " that ", KJ_ASSERT_NONNULL(labelsFile), " does not name: ", unlisted.names()));
    }
    if (repeated.count() > 0) {
      warn(kj::str(images, " has several entries of ", counted(repeated.count(), "name", "names"),
          ". The last entry of each is used: ", repeated.names()));
    }
    auto& hidden = members.hidden();
    if (hidden.count() > 0) {
      warn(kj::str("left out ",
          counted(hidden.count(), "hidden file or folder", "hidden files or folders"), " of ",
          images, ": ", hidden.names()));
    }
  }

  // This comes before the check of the labels, which would be blamed for the missing images.
  void checkReadable(const Members& members) {
    auto& unreadable = members.unreadable();
    if (unreadable.count() == 0) return;
    auto what = kj::str(counted(unreadable.count(), "entry", "entries"), " of ", images);
    if (config.onBadRecord == BadRecordPolicy::FAIL) {
      configs::fail("cannot read ", what, ": ", unreadable.names(), "; ",
          isArchive ? kj::str("unpack the archive and set ", setting, " to the folder")
                    : kj::str("give yourself permission to read and search them"),
          ", or ", config.names.skip);
    }
    warn(kj::str("left out ", what, " that cannot be read: ", unreadable.names(), " (",
        config.names.skipped, ")"));
  }

  void tellOfBadImages() {
    // A single bad image was named already. If there are several, their number is new information.
    if (bad > 1) {
      warn(kj::str("left out ", bad, " of the ", met, " images of ", images, " (",
          config.names.skipped, ")"));
    }
    LeftOut empty;
    for (auto& entry: classes) {
      if (entry.value.good == 0) empty.add(entry.value.name);
    }
    if (empty.count() > 0 && good > 0) {
      warn(kj::str("no image is left of ", counted(empty.count(), "class", "classes"), " of ",
          images, ": ", empty.names(), " (", config.names.skipped, ")"));
    }
  }

  [[noreturn]] void refuseList(kj::ArrayPtr<const kj::String> paths) {
    LeftOut names;
    for (auto& path: paths) names.add(path);
    configs::fail(KJ_ASSERT_NONNULL(labelsFile), " names none of the ", names.count(),
        " images of ", images, ": paths in it must be relative to that folder or archive, such as ",
        names.names());
  }

  [[noreturn]] void refuseWithoutImage() {
    configs::fail("there is no image in ", images, isNested ? " and its archives" : "", ": set ",
        setting, " to a folder or an archive of images, whose names end in .jpeg, .jpg or .png");
  }

  // Refuses labels of images that are not there.
  void checkNoneMissing() {
    for (auto& entry: entries) KJ_ASSERT_NONNULL(labelOf(entry.key)).met = true;
    LeftOut missing;
    for (auto& entry: labels) {
      if (entry.value.met) continue;
      KJ_IF_MAYBE(why, whyMissing(entry.key)) {
        missing.add(entry.key, *why);
      } else {
        missing.add(entry.key);
      }
    }
    if (missing.count() == 0) return;
    configs::fail(images, " has ", labels.size() - missing.count(), " of the ", labels.size(),
        " images that ", KJ_ASSERT_NONNULL(labelsFile), " names. Missing: ", missing.names(),
        ". Add them, or remove their lines");
  }

  void checkAllMet() {
    if (good == 0) {
      configs::fail("no image of ", images, " can be read: all ", bad, " were left out");
    }
    LeftOut gone;
    for (auto& entry: entries) {
      if (entry.value > 0) gone.add(entry.key);
    }
    if (gone.count() == 0) return;
    configs::fail(images, " was changed while it was imported: ", gone.names(),
        gone.count() == 1 ? " is" : " are", " gone. Try again");
  }

  kj::Maybe<kj::String> whyMissing(kj::StringPtr path) const {
    if (hiddenPartOf(path) != nullptr) {
      return kj::str("it is hidden");
    }
    if (!isNamedAsImage(path)) {
      return kj::str("its name does not end in .jpeg, .jpg or .png");
    }
    auto file = kj::str(images, "/", path);
    KJ_IF_MAYBE(why, whyUnreadable(file)) return kj::mv(*why);
    return whyNeither(file);
  }

  const DataConfig& config;
  kj::StringPtr images;
  const ImagePlace& place;
  kj::StringPtr setting;
  const bool isArchive;
  BadImages& badImages;
  Progress& progress;
  Warn& warn;

  kj::Maybe<const FolderImport&> classesFrom;
  const Labels* otherLabels = nullptr;
  Labels labels;
  // of `labels`; filled after the first name was not found
  kj::HashMap<kj::String, kj::StringPtr> composedNames;
  kj::Maybe<kj::String> labelsFile;       // its name in messages; null: labels are by folder
  kj::HashMap<kj::String, uint> entries;  // of each image: how many were not read yet
  LeftOut repeated;                       // names with several entries
  LeftOut otherFiles;
  LeftOut archives;                      // those of `otherFiles` that are archives
  LeftOut unlisted;                      // images that the user's list does not name
  bool isNested = false;                 // whether the archives in `images` are read like folders
  kj::Maybe<kj::StringPtr> otherImages;  // see keepApartFrom()
  kj::HashMap<kj::String, uint32_t> samples;  // labels of WebDataset's samples
  kj::HashMap<uint32_t, Class> classes;       // by label
  uint64_t met = 0;                           // images that have a label
  uint64_t done = 0;                          // how many of these were written or left out
  uint64_t good = 0;
  uint64_t bad = 0;
};

}  // namespace

bool isNamedForImport(kj::StringPtr path) {
  return isNamedAsImage(path) || path.endsWith(CLASS_ENDING) || isNamedAsArchive(path);
}

kj::Array<kj::String> importFolder(const DataConfig& config, const ImagePlace& place,
    const kj::Maybe<ImagePlace>& validationPlace, RecordWriter& training, RecordWriter& validation,
    BadImages& badImages, Progress& progress, Warn& warn) {
  FolderImport import(config, place, config.names.source, badImages, progress, warn);
  kj::Maybe<FolderImport> ofValidation;
  LabelList listed;
  KJ_IF_MAYBE(own, validationPlace) {
    // Two lists may divide the images of one place.
    bool isShared = own->images == place.images && own->isChosen;
    if (!isShared) {
      checkApart(config, place, *own, warn);
      import.keepApartFrom(own->images);
    }
    if (isShared) {
      listed = readLabels(KJ_ASSERT_NONNULL(own->labels));
      import.shareWith(listed.labels);
    }
    import.list();
    auto& second = ofValidation.emplace(
        config, *own, config.names.validationSource, badImages, progress, warn);
    second.useClassesOf(import);
    if (!isShared) second.keepApartFrom(place.images);
    if (isShared) {
      second.shareWith(import.ownLabels());
      tellOfBoth(place.images, import.ownLabels(), listed.labels, warn);
    }
    second.list();
    tellOfUnknownLabels(import.numbers(), second.numbers(), warn);
  } else {
    import.list();
  }
  auto numbers = import.numbers();
  tellOfFirstLabel(numbers, warn);
  auto names = kj::mv(import.classNames);
  KJ_IF_MAYBE(path, config.classNames) {
    names = readClassNames(*path, import.foldersIfClasses());
    requireNames(*path, names, numbers);
  }
  // Reading the images may take hours. So everything else was checked before.
  KJ_IF_MAYBE(second, ofValidation) {
    import.write(training, nullptr);
    second->id = import.id;
    second->number = import.number;
    second->write(validation, nullptr);
  } else {
    import.write(training, validation);
  }
  return names;
}

}  // namespace io
