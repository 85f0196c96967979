// tools/pack_records.cc: makes record databases from raw archives or a folder of images, outside of
// the cache.
#include <kj/debug.h>
#include <kj/main.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "io/datasets/datasets.h"
#include "io/datasets/fetch.h"
#include "io/datasets/import_into.h"
#include "io/paths.h"
#include "runner/launch/progress.h"
#include "runner/system/command_line.h"
#include "runner/system/interrupts.h"
#include "runner/text/numbers.h"

namespace tools {

namespace {

using kj::uint;

constexpr kj::StringPtr DESCRIPTION =
    "Imports a data set into the new folder OUT: training.mdb, validation.mdb and, if all images "
    "have one shape, their mean image. An experiment reads it by `data.source = \"OUT\"`. Without "
    "--source, the program looks for the data set in $RUNNER_DATASETS, then in Debian's "
    "installation folder, then at its official address.\n"
    "\n"
    "If the program is killed while it downloads or packs images, the same command continues from "
    "there, and makes the same bytes. A transfer that breaks off is tried again.\n"
    "\n"
    "Examples:\n"
    "  pack_records --dataset cifar10 records/cifar10\n"
    "  pack_records --dataset mnist --source mnist --encoding jpeg records/mnist\n"
    "  pack_records --dataset image_folder --source photos.tar --resize 256 photos\n"
    "  pack_records --dataset image_folder --source https://example.org/train.tar photos\n"
    "  pack_records --dataset image_folder --source images --labels train.lst --validation-labels "
    "val.lst photos\n"
    "  pack_records --dataset image_folder --source train.rec --validation-source val.rec "
    "--class-names names.txt photos"_kj;

template <typename T>
kj::Maybe<const T*> rowNamed(kj::ArrayPtr<const T> rows, kj::StringPtr name) {
  for (auto& row: rows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

template <typename T>
kj::String unknown(kj::ArrayPtr<const T> rows) {
  auto names = KJ_MAP(row, rows) {
    return kj::StringPtr(row.name);
  };
  return kj::str("one of: ", kj::strArray(names, ", "));
}

class PackRecords {
public:
  explicit PackRecords(runner::CommandLine& commandLine): commandLine(commandLine) {
    config.resizeShortSide = 0;
    config.dataset = nullptr;
    config.names = {.source = "--source",
        .validationSource = "--validation-source",
        .labels = "--labels",
        .validationLabels = "--validation-labels",
        .dataset = "--dataset",
        .resize = "--resize",
        .folder = "OUT",
        .skip = "give --skip-bad",
        .skipped = "--skip-bad"};
  }

  kj::MainFunc getMain() {
    return kj::MainBuilder(commandLine, "pack_records", DESCRIPTION)
        .addOptionWithArg({'d', "dataset"}, KJ_BIND_METHOD(*this, setDataset), "<word>",
            "The data set: mnist, fashion_mnist, cifar10, cifar100, idx or image_folder. "
            "Required.")
        .addOptionWithArg({'s', "source"}, KJ_BIND_METHOD(*this, setSource), "<place>",
            "The source: a folder, an archive, or the address of a mirror. For image_folder, also "
            "the http or https address of one archive.")
        .addOptionWithArg({"validation-source"}, KJ_BIND_METHOD(*this, setValidationSource),
            "<place>",
            "For image_folder: a folder or an archive with the images for validation, or the "
            "address of one archive. Default: every tenth image of the source.")
        .addOptionWithArg({"labels"}, KJ_BIND_METHOD(*this, setLabels), "<file>",
            "For image_folder: a file with lines `path<TAB>label`, `path label`, or, if it ends in "
            ".lst, `number<TAB>label<TAB>path`. Images that it does not name are left out. "
            "Default: labels.tsv in or beside the source, or else the folders of the images.")
        .addOptionWithArg({"validation-labels"}, KJ_BIND_METHOD(*this, setValidationLabels),
            "<file>",
            "Like --labels, but for the images of --validation-source. Without that option, the "
            "images of the source that this file names are for validation.")
        .addOptionWithArg({"class-names"}, KJ_BIND_METHOD(*this, setClassNames), "<file>",
            "For image_folder: a file with the name of one class per line, by label.")
        .addOptionWithArg({'e', "encoding"}, KJ_BIND_METHOD(*this, setEncoding), "<word>",
            "The format of stored pixels: raw or jpeg. JPEG files that need no resizing are kept "
            "as they are. Default: raw; jpeg for image_folder.")
        .addOptionWithArg({'r', "resize"}, KJ_BIND_METHOD(*this, setResize), "<pixels>",
            "Resizes the shorter side of each image to this many pixels.")
        .addOption({"skip-bad"}, KJ_BIND_METHOD(*this, skipBad),
            "For image_folder: leaves out images that cannot be read, with a warning, instead of "
            "stopping.")
        .expectArg("OUT", KJ_BIND_METHOD(*this, setOut))
        .callAfterParsing(KJ_BIND_METHOD(*this, run))
        .build();
  }

private:
  kj::MainBuilder::Validity setDataset(kj::StringPtr word) {
    KJ_IF_MAYBE(row, rowNamed(io::DATASETS, word)) {
      config.dataset = *row;
      return true;
    }
    return unknown(io::DATASETS);
  }

  // Keeps a path or an address in `setting`.
  static kj::MainBuilder::Validity setPlace(kj::Maybe<kj::String>& setting, kj::StringPtr place) {
    if (!io::isAddress(place)) {
      KJ_IF_MAYBE(why, io::whyUnreadable(place))
        return kj::str("cannot read `", place, "`: ", *why);
    }
    bool isNothing = !io::isAddress(place) && io::pathKind(place) == io::PathKind::NOTHING;
    if (isNothing && io::whyNeither(place) == nullptr) {
      return kj::str("there is nothing at `", place, "`. Name a folder, an archive or an address");
    }
    setting = kj::str(place);
    return true;
  }
  kj::MainBuilder::Validity setSource(kj::StringPtr place) {
    return setPlace(config.source, place);
  }
  kj::MainBuilder::Validity setValidationSource(kj::StringPtr place) {
    return setPlace(config.validationSource, place);
  }

  // Keeps the path of a file in `setting`.
  static kj::MainBuilder::Validity setFile(kj::Maybe<kj::String>& setting, kj::StringPtr path) {
    if (io::pathKind(path) != io::PathKind::FILE) return kj::str("there is no file `", path, "`");
    setting = kj::str(path);
    return true;
  }
  kj::MainBuilder::Validity setLabels(kj::StringPtr path) { return setFile(config.labels, path); }
  kj::MainBuilder::Validity setValidationLabels(kj::StringPtr path) {
    return setFile(config.validationLabels, path);
  }
  kj::MainBuilder::Validity setClassNames(kj::StringPtr path) {
    return setFile(config.classNames, path);
  }

  kj::MainBuilder::Validity setEncoding(kj::StringPtr word) {
    KJ_IF_MAYBE(row, rowNamed(io::ENCODINGS, word)) {
      encoding = (*row)->value;
      return true;
    }
    return unknown(io::ENCODINGS);
  }

  kj::MainBuilder::Validity setResize(kj::StringPtr pixels) {
    uint64_t number = runner::parseWhole(pixels, 8192).orDefault(0);
    if (number == 0) return kj::str("`", pixels, "` is not a whole number from 1 to 8192");
    config.resizeShortSide = number;
    return true;
  }

  kj::MainBuilder::Validity skipBad() {
    config.onBadRecord = io::BadRecordPolicy::SKIP;
    return true;
  }

  kj::MainBuilder::Validity setOut(kj::StringPtr path) {
    if (io::pathKind(path) != io::PathKind::NOTHING) {
      return kj::str("`", path, "` exists already. Name a new folder");
    }
    out = io::withoutSlash(path);
    return true;
  }

  kj::MainBuilder::Validity run() {
    if (out.size() == 0) return kj::str("OUT is empty. Name a new folder, e.g. records/mnist");
    if (config.dataset == nullptr) return kj::str("--dataset is missing: ", unknown(io::DATASETS));
    bool isFolder = config.dataset->source->format == io::DatasetSource::FOLDER;
    if (config.validationSource != nullptr && (!isFolder || config.source == nullptr)) {
      return kj::str("--validation-source needs --dataset image_folder and --source");
    }
    bool hasLists = config.labels != nullptr || config.validationLabels != nullptr ||
                    config.classNames != nullptr;
    if (hasLists && !isFolder) {
      return kj::str("--labels, --validation-labels and --class-names need --dataset image_folder");
    }
    if (config.validationLabels != nullptr && config.labels == nullptr &&
        config.validationSource == nullptr) {
      return kj::str("--validation-labels needs --labels or --validation-source");
    }
    if (config.onBadRecord == io::BadRecordPolicy::SKIP && !isFolder) {
      return kj::str("--skip-bad needs --dataset image_folder: the files of ", config.dataset->name,
          " are imported as a whole");
    }
    config.encoding = encoding.orDefault(config.dataset->source->encoding);
    runner::ProgressLine line(STDERR_FILENO);
    runner::WorkProgress pace;
    runner::endAtInterrupt(kj::str("\ninterrupted; ", out, " was not written\n"), &io::isImporting);
    auto problem = kj::runCatchingExceptions([&]() {
      io::packDataset(
          config, out,
          [&](kj::StringPtr what, uint64_t done, uint64_t total) {
            if (runner::isInterrupted()) configs::fail("interrupted");
            line.show(pace.text(what, done, total));
          },
          [&](kj::StringPtr sentence) {
            line.clear();
            commandLine.warning(sentence);
          });
    });
    line.clear();
    KJ_IF_MAYBE(e, problem) {
      if (runner::isInterrupted()) {
        auto part = kj::str(out, ".part");
        if (io::pathKind(part) == io::PathKind::FOLDER) {
          runner::endAtInterrupt(kj::str("\ninterrupted; ", out,
              " is not complete. The same command continues from here: ", part,
              " holds what is packed\n"));
        }
        runner::endInterrupted();
      }
      kj::throwFatalException(kj::mv(*e));
    }
    for (auto name: {"training", "validation"}) {
      auto db = io::RecordDb::open(kj::str(out, "/", name, ".mdb"));
      runner::print(kj::str(db->path(), ": ", runner::grouped(db->count()),
          " records, labels below ", db->classes(), "\n"));
    }
    return true;
  }

  runner::CommandLine& commandLine;
  io::DataConfig config;
  kj::Maybe<io::Encoding> encoding;
  kj::String out;
};

}  // namespace

}  // namespace tools

int main(int argc, char* argv[]) {
  runner::openStandardStreams();
  runner::CommandLine commandLine("pack_records");
  tools::PackRecords program(commandLine);
  commandLine.run(program.getMain(), argc, argv);
}
