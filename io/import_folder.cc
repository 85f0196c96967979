#include "io/import_folder.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "configs/language/failure.h"
#include "io/archives.h"
#include "io/kept_image.h"
#include "io/labels.h"
#include "io/left_out.h"
#include "io/paths.h"

namespace io {

namespace {

// The share for validation: images HELD_OUT-1, 2·HELD_OUT-1, …
constexpr uint64_t HELD_OUT = 10;
constexpr uint64_t IMAGES_A_REPORT = 16;
constexpr size_t IMAGE_FILE_BYTES_MAX = size_t(1) << 28;

// How the names of images end.
constexpr kj::StringPtr ENDINGS[] = {".jpeg"_kj, ".jpg"_kj};

bool isNamedAsImage(kj::StringPtr path) {
  auto name = kj::str(baseName(path));
  for (auto& c: name) {
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  }
  for (auto ending: ENDINGS) {
    if (name.endsWith(ending)) return true;
  }
  return false;
}

class FolderImport {
public:
  FolderImport(const DataConfig& config, const ImagePlace& place, Progress& progress, Warn& warn)
      : config(config), images(place.images), place(place), progress(progress), warn(warn) {}

  void run(RecordWriter& training, RecordWriter& validation) {
    KJ_IF_MAYBE(path, place.labels) {
      labels = readLabels(*path);
      labelsFile = kj::str(*path);
    } else {
      list();
    }
    auto members = Members::open(images);
    for (;;) {
      kj::StringPtr path;
      KJ_IF_MAYBE(p, members->next()) {
        path = *p;
      } else {
        break;
      }
      if (!isImage(path)) continue;
      auto label = labelOf(path);
      KJ_IF_MAYBE(kept, read(*members, path)) {
        auto& writer = good % HELD_OUT == HELD_OUT - 1 ? validation : training;
        writer.add(label, good, kept->encoding, kept->shape, kept->bytes, path);
        ++good;
      }
      if (met % IMAGES_A_REPORT == 0) progress("importing, images", met, labels.size());
    }
    progress("importing, images", met, labels.size());
    if (!listed) tellPassedOver(*members);
    tellOfBadImages();
    checkAllMet();
  }

private:
  // Finds all images, and labels them by the labels.tsv of the archive, else by their folders.
  void list() {
    kj::Vector<kj::String> paths;
    bool isArchive = pathKind(images) == PathKind::FILE;
    auto members = Members::open(images);
    auto what = kj::str("listing ", baseName(images));
    for (;;) {
      KJ_IF_MAYBE(path, members->next()) {
        if (isArchive && baseName(*path) == LABELS_FILE) {
          readLabelsOf(*members, *path);
        } else if (isImage(*path)) {
          paths.add(kj::str(*path));
        }
      } else {
        break;
      }
      progress(what, members->done(), members->total());
    }
    tellPassedOver(*members);
    listed = true;
    if (labelsFile == nullptr) labels = labelsByFolder(config, images, paths.releaseAsArray());
  }

  // Reads the archive's member `path`. Its lines count from the folder that it lies in, which may
  // be the one folder that was packed.
  void readLabelsOf(Members& members, kj::StringPtr path) {
    auto name = kj::str(path, " of ", images);
    KJ_IF_MAYBE(other, labelsFile) {
      configs::fail("there are two files of labels: ", *other, " and ", name,
          "; leave one of them, or unpack the archive and set ", config.names.source,
          " to the folder that is meant");
    }
    auto content = about(name, [&]() { return members.read(LABELS_FILE_BYTES_MAX); });
    labels =
        parseLabels(name, content, kj::heapString(path.slice(0, path.size() - LABELS_FILE.size())));
    labelsFile = kj::mv(name);
  }

  bool isImage(kj::StringPtr path) {
    if (isNamedAsImage(path)) return true;
    bool isFileOfLabels = path == LABELS_FILE && place.labels != nullptr;
    if (!listed && !isFileOfLabels) otherFiles.add(path);
    return false;
  }

  uint32_t labelOf(kj::StringPtr path) {
    KJ_IF_MAYBE(label, labels.find(path)) {
      label->met = true;
      ++met;
      return label->number;
    }
    KJ_IF_MAYBE(file, labelsFile) {
      configs::fail(printable(path), " of ", images, " has no label in ", *file,
          ": give it one, or take it away");
    }
    configs::fail(
        images, " was changed while it was imported: ", printable(path), " is new; try again");
  }

  // The image of the member `path`; null, after a warning, if it is of no use.
  kj::Maybe<KeptImage> read(Members& members, kj::StringPtr path) {
    kj::Maybe<KeptImage> kept;
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() {
                  file = members.read(IMAGE_FILE_BYTES_MAX);
                  kept = keepJpeg(config, file, decoder);
                })) {
      if (config.onBadRecord->word == BadRecordPolicy::FAIL) {
        configs::fail("cannot import ", printable(path), " of ", images, ": it ",
            e->getDescription(), "; repair or remove it, or ", config.names.skip);
      }
      ++bad;
      warn(kj::str(
          printable(path), " ", e->getDescription(), "; left out (", config.names.skipped, ")"));
    }
    return kept;
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
          " whose ", otherFiles.count() == 1 ? "name ends" : "names end",
          " in neither .jpeg nor .jpg: ", otherFiles.names()));
    }
    auto& hidden = members.hidden();
    if (hidden.count() > 0) {
      warn(kj::str("left out ",
          counted(hidden.count(), "hidden file or folder", "hidden files or folders"), " of ",
          images, ": ", hidden.names()));
    }
    auto& nameless = members.nameless();
    if (nameless.count() == 0) return;
    auto what = kj::str(
        counted(nameless.count(), "entry", "entries"), " of ", images, " (", nameless.names(), ")");
    if (config.onBadRecord->word == BadRecordPolicy::FAIL) {
      configs::fail("cannot read the names of ", what,
          ": they are not valid, or this machine has no UTF-8 locale; unpack the archive and set ",
          config.names.source, " to the folder, or ", config.names.skip);
    }
    warn(kj::str("left out ", what, ", whose names cannot be read (", config.names.skipped, ")"));
  }

  void tellOfBadImages() {
    // One was named already; of several, their number is news.
    if (bad > 1) {
      warn(kj::str("left out ", bad, " of the ", met, " images of ", images, " (",
          config.names.skipped, ")"));
    }
  }

  void checkAllMet() {
    if (met == 0) {
      configs::fail("there is no image in ", images, ": set ", config.names.source,
          " to a folder or an archive of JPEG files, whose names end in .jpeg or .jpg");
    }
    if (good == 0) {
      configs::fail("no image of ", images, " can be read: all ", bad, " were left out");
    }
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
    KJ_IF_MAYBE(file, labelsFile) {
      configs::fail(images, " has ", labels.size() - missing.count(), " of the ", labels.size(),
          " images that ", *file, " names; missing: ", missing.names(),
          "; put them there, or remove their lines");
    }
    configs::fail(images, " was changed while it was imported: ", missing.names(),
        missing.count() == 1 ? " is" : " are", " gone; try again");
  }

  kj::Maybe<kj::String> whyMissing(kj::StringPtr path) const {
    if (hiddenPartOf(path) != nullptr) {
      return kj::str("it is hidden");
    }
    if (!isNamedAsImage(path)) {
      return kj::str("its name does not end in .jpeg or .jpg");
    }
    return whyNeither(kj::str(images, "/", path));
  }

  const DataConfig& config;
  kj::StringPtr images;
  const ImagePlace& place;
  Progress& progress;
  Warn& warn;

  Labels labels;
  kj::Maybe<kj::String> labelsFile;  // as messages name it; null: labels by folder
  bool listed = false;               // by list(), which has told what is passed over
  LeftOut otherFiles;
  JpegDecoder decoder;
  kj::Array<kj::byte> file;  // the image read last
  uint64_t met = 0;          // images with a label
  uint64_t good = 0;
  uint64_t bad = 0;
};

}  // namespace

void importFolder(const DataConfig& config, const ImagePlace& place, RecordWriter& training,
    RecordWriter& validation, Progress& progress, Warn& warn) {
  FolderImport(config, place, progress, warn).run(training, validation);
}

}  // namespace io
