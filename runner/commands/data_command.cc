#include "runner/commands/data_command.h"

#include <kj/debug.h>
#include <kj/encoding.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "io/datasets/import.h"
#include "io/images/pixels.h"
#include "io/images/record_check.h"
#include "io/left_out.h"
#include "io/paths.h"
#include "runner/commands/run_data.h"
#include "runner/launch/progress.h"
#include "runner/report/contact_sheet.h"
#include "runner/system/files.h"
#include "runner/system/interrupts.h"
#include "runner/system/reason.h"
#include "runner/system/version.h"
#include "runner/text/numbers.h"
#include "runner/text/text_table.h"

namespace runner {

namespace {

using Databases = kj::Array<kj::Own<io::RecordDb>>;

// How many names of classes a line shows.
constexpr size_t NAMES_MAX = 10;

// Returns the name of class `label`, or its number if it has none.
kj::String nameOf(kj::ArrayPtr<const kj::String> names, uint label) {
  return label < names.size() && names[label].size() > 0 ? kj::str(names[label]) : kj::str(label);
}

// Returns the first names for a sentence: "airplane, automobile, …". Empty if there are none.
kj::String shownNames(kj::ArrayPtr<const kj::String> names) {
  kj::Vector<kj::StringPtr> first;
  for (auto& name: names) {
    if (name.size() == 0) continue;
    if (first.size() == NAMES_MAX) return kj::str(kj::strArray(first, ", "), ", …");
    first.add(name);
  }
  return kj::strArray(first, ", ");
}

// Returns "28×28, 1 channel".
kj::String shapeText(io::ImageShape shape) {
  return kj::str(io::sizeOf(shape), ", ", counted(shape.channels, "channel"));
}

}  // namespace

// A command with the argument PATH.
class RecordsCommand: protected FileCommand {
protected:
  using FileCommand::FileCommand;

  void addPath(kj::MainBuilder& builder) {
    builder.expectArg("PATH", [this](kj::StringPtr word) {
      setFile(word);
      return true;
    });
  }

  // Opens the databases of PATH. The data set of an experiment is imported first if necessary. If
  // they cannot be opened, prints why and ends the program. Throws if the import fails.
  Databases open() {
    auto paths = files();
    kj::Maybe<Databases> opened;
    commandLine.orWrongInput([&]() {
      kj::Vector<kj::Own<io::RecordDb>> databases;
      for (auto& path: paths) databases.add(io::RecordDb::open(path));
      opened = databases.releaseAsArray();
    });
    return kj::mv(KJ_ASSERT_NONNULL(opened));
  }

private:
  kj::Array<kj::String> files() {
    if (io::pathKind(path()) == io::PathKind::FOLDER) return filesOf(path());
    if (!path().endsWith(".toml")) return kj::arr(kj::str(path()));
    auto loaded = loadOnlyData();
    auto& config = KJ_ASSERT_NONNULL(loaded.config);
    prepareData(config, path(), commandLine);
    auto dataset = io::openDataset(config, io::unheard());
    return filesOf(dataset->folder());
  }

  static kj::Array<kj::String> filesOf(kj::StringPtr folder) {
    auto inside = io::withoutSlash(folder);
    return kj::arr(
        kj::str(inside, "/", io::TRAINING_FILE), kj::str(inside, "/", io::VALIDATION_FILE));
  }
};

class DataCommand::Info: private RecordsCommand {
public:
  using RecordsCommand::RecordsCommand;

  kj::MainFunc getMain() {
    kj::MainBuilder builder(commandLine, VERSION,
        "Shows the description of record databases: how many records, of which shape and classes, "
        "and where they come from. PATH is a folder with training.mdb and validation.mdb, one of "
        "these files, or an experiment file. The data set of an experiment file is imported first "
        "if necessary.\n"
        "\n"
        "  runner data info configs/cifar10_dist_sync.toml\n"
        "  runner data info records/cifar10");
    addPath(builder);
    return builder.callAfterParsing(KJ_BIND_METHOD(*this, run)).build();
  }

private:
  Validity run() {
    for (auto& db: open()) print(textOf(*db));
    return true;
  }

  static kj::String textOf(const io::RecordDb& db) {
    kj::Vector<kj::String> lines;
    auto add = [&](kj::StringPtr what, kj::StringPtr value) {
      constexpr size_t WIDTH = 20;
      auto padding = kj::repeat(' ', WIDTH - kj::min(WIDTH, what.size()));
      lines.add(kj::str("  ", what, padding, value, "\n"));
    };
    lines.add(kj::str(
        db.path(), ": ", grouped(db.count()), db.count() == 1 ? " record" : " records", "\n"));
    KJ_IF_MAYBE(name, db.dataset()) add("data set", *name);
    KJ_IF_MAYBE(shape, db.shape()) {
      add("images", shapeText(*shape));
    } else {
      add("images", "of several sizes");
    }
    add("labels", kj::str("below ", grouped(db.classes())));
    auto names = shownNames(io::classNamesOf(db));
    if (names.size() > 0) add("classes", names);
    for (auto& line: linesOf(db.origin())) {
      size_t colon = line.findFirst(':').orDefault(0);
      if (colon == 0) continue;
      auto value = line.slice(colon + 1);
      add(kj::str(line.slice(0, colon)), value.startsWith(" ") ? value.slice(1) : value);
    }
    add("records sha256", kj::encodeHex(db.digest()));
    return kj::strArray(lines, "");
  }

  static kj::Array<kj::String> linesOf(kj::StringPtr text) {
    kj::Vector<kj::String> lines;
    while (text.size() > 0) {
      size_t end = text.findFirst('\n').orDefault(text.size());
      lines.add(kj::heapString(text.slice(0, end)));
      text = text.slice(kj::min(end + 1, text.size()));
    }
    return lines.releaseAsArray();
  }
};

class DataCommand::Verify: private RecordsCommand {
public:
  using RecordsCommand::RecordsCommand;

  kj::MainFunc getMain() {
    kj::MainBuilder builder(commandLine, VERSION,
        "Reads every record, decodes every image, and prints totals: records, classes, image "
        "sizes. PATH is an experiment file, a folder with training.mdb and validation.mdb, or one "
        "of these files.\n"
        "\n"
        "  runner data verify records/cifar10\n"
        "\n"
        "Ends with exit code 1 if a record is bad, or if the SHA-256 of all records is not the one "
        "that the file states.");
    addPath(builder);
    return builder.callAfterParsing(KJ_BIND_METHOD(*this, run)).build();
  }

private:
  Validity run() {
    bool isGood = true;
    for (auto& db: open()) {
      io::RecordSums sums;
      withProgress([&](io::Progress& progress) { sums = io::checkRecords(*db, progress); });
      print(textOf(*db, sums));
      isGood = isGood && sums.bad == 0 && sums.hasItsDigest;
    }
    if (!isGood) commandLine.endWith(RUN_FAILED);
    return true;
  }

  static kj::String textOf(const io::RecordDb& db, const io::RecordSums& sums) {
    auto& images = sums.imagesOfClass;
    size_t classes = images.size() - std::count(images.begin(), images.end(), 0);
    auto head = kj::str(db.path(), ": ", grouped(sums.good), " good records of ",
        io::counted(classes, "class", "classes"), ", ", bytesCell(double(sums.payload_bytes)));
    if (sums.good > 0) {
      auto most = std::max_element(images.begin(), images.end());
      auto least = most;
      for (auto each = images.begin(); each < images.end(); ++each) {
        if (*each > 0 && *each < *least) least = each;
      }
      auto names = io::classNamesOf(db);
      auto text = [&](const uint64_t* each) {
        return kj::str(grouped(*each), " of ", nameOf(names, each - images.begin()));
      };
      head = kj::str(head, "\n  images per class: ",
          *least == *most ? grouped(*most) : kj::str(text(least), " to ", text(most)),
          "\n  shorter sides: ",
          sums.sideMin == sums.sideMax ? kj::str(sums.sideMin)
                                       : kj::str(sums.sideMin, " to ", sums.sideMax),
          " pixels\n  JPEG files: ", grouped(sums.jpegFiles));
    }
    kj::Vector<kj::String> lines;
    lines.add(kj::mv(head));
    for (auto& problem: sums.problems) lines.add(kj::str("  ", problem));
    if (sums.bad > sums.problems.size()) {
      lines.add(kj::str("  and ", grouped(sums.bad - sums.problems.size()), " more bad records"));
    }
    if (!sums.hasItsDigest) {
      lines.add(kj::str("  the SHA-256 of the records is not the one that the file states"));
    }
    return kj::str(kj::strArray(lines, "\n"), "\n");
  }
};

class DataCommand::Show: private RecordsCommand {
public:
  using RecordsCommand::RecordsCommand;

  kj::MainFunc getMain() {
    kj::MainBuilder builder(commandLine, VERSION,
        "Writes a page with images and their labels, as they are stored. PATH is an experiment "
        "file, a folder of packed records, or a database. For a file or a folder, shows the "
        "training "
        "records.\n"
        "\n"
        "  runner data show records/cifar10\n"
        "  runner data show records/cifar10/validation.mdb --class cat --count 200");
    addPath(builder);
    return builder
        .addOptionWithArg({"count"}, countSetter(count, COUNT_MAX), "N",
            "how many images (default: 60). They are spread evenly over the records")
        .addOptionWithArg({"class"}, textSetter(className, "name a class"), "NAME",
            "only images of this class: its name or its number")
        .addOptionWithArg({"output"}, textSetter(output, "name a file"), "FILE",
            "where to write the page (default: images.html)")
        .callAfterParsing(KJ_BIND_METHOD(*this, run))
        .build();
  }

private:
  Validity run() {
    KJ_IF_MAYBE(why, whyUnwritable(output)) {
      return kj::str("cannot write ", output, ": ", *why, ". Choose another --output");
    }
    if (isForeignFile(output, SHEET_BEGIN)) {
      return kj::str(output, " exists, and is not a page. Choose another --output, or remove it");
    }
    auto databases = open();
    auto& db = *databases[0];
    auto reader = io::RecordReader::open(db);
    io::JpegDecoder decoder;
    kj::Vector<SheetImage> images;
    auto names = io::classNamesOf(db);
    auto all = recordsOf(db, *reader, names);
    size_t shown = kj::min(count, all.size());
    for (size_t i = 0; i < shown; ++i) {
      uint64_t index = all[i * all.size() / shown];
      auto problem = kj::runCatchingExceptions([&]() {
        auto record = reader->read(index);
        auto jpeg = record.encoding == io::Encoding::JPEG
                        ? kj::heapArray(record.bytes)
                        : io::encodeJpeg(io::pixelsOf(record, decoder));
        images.add(SheetImage{kj::mv(jpeg), nameOf(names, record.label),
            kj::str(io::nameOfRecord(db, index, record.id), ", label ", record.label, ", ",
                shapeText(record.shape))});
      });
      KJ_IF_MAYBE(e, problem) commandLine.warning(reasonOf(*e));
    }
    auto of = className.size() > 0 ? kj::str(" of class ", className) : kj::str();
    writeWhole(output,
        contactSheet(db.path(),
            kj::str(grouped(images.size()), " of ", grouped(all.size()), " images", of), images),
        "choose another --output");
    print(kj::str(
        output, ": ", grouped(images.size()), " of ", grouped(all.size()), " images", of, "\n"));
    return true;
  }

  // Returns the records to choose from. Ends the program if there are none.
  kj::Array<uint64_t> recordsOf(
      const io::RecordDb& db, io::RecordReader& reader, kj::ArrayPtr<const kj::String> names) {
    kj::Vector<uint64_t> found;
    auto wanted = labelsOf(className, names);
    withProgress([&](io::Progress& progress) {
      for (uint64_t i = 0; i < db.count(); ++i) {
        if (i % 1000 == 0) progress("looking for images, records", i, db.count());
        if (className.size() > 0 && !isOfClass(reader, i, wanted)) continue;
        found.add(i);
      }
    });
    if (found.size() == 0) commandLine.exitError(kj::str("error: ", whyNone(db, names)));
    return found.releaseAsArray();
  }

  kj::String whyNone(const io::RecordDb& db, kj::ArrayPtr<const kj::String> names) {
    if (className.size() == 0) return kj::str(db.path(), " has no record");
    return kj::str(db.path(), " has no image of class ", className, ". Its labels are below ",
        db.classes(), names.size() > 0 ? "; its classes: " : "", shownNames(names));
  }

  // Returns the labels of the classes that `word` names. If there are none, `word` is the number of
  // a class.
  static kj::Array<kj::String> labelsOf(kj::StringPtr word, kj::ArrayPtr<const kj::String> names) {
    kj::Vector<kj::String> labels;
    for (auto label: kj::indices(names)) {
      if (word == names[label]) labels.add(kj::str(label));
    }
    if (labels.empty()) labels.add(kj::str(word));
    return labels.releaseAsArray();
  }

  static bool isOfClass(
      io::RecordReader& reader, uint64_t index, kj::ArrayPtr<const kj::String> labels) {
    bool is = false;
    // Bad records are skipped. `runner data verify` names them.
    kj::runCatchingExceptions([&]() {
      auto label = kj::str(reader.read(index).label);
      for (auto& each: labels) is = is || each == label;
    });
    return is;
  }

  static constexpr uint64_t COUNT_MAX = 10000;
  uint64_t count = 60;
  kj::String className;
  kj::String output = kj::str("images.html");
};

DataCommand::DataCommand(CommandLine& commandLine)
    : commandLine(commandLine),
      info(kj::heap<Info>(commandLine)),
      verify(kj::heap<Verify>(commandLine)),
      show(kj::heap<Show>(commandLine)) {}

DataCommand::~DataCommand() noexcept(false) {}

kj::MainFunc DataCommand::getMain() {
  kj::MainBuilder builder(commandLine, VERSION,
      "Shows and checks record databases: the imported data set of an experiment, or a folder that "
      "pack_records wrote.\n"
      "\n"
      "  runner data info configs/cifar10_dist_sync.toml\n"
      "  runner data verify records/cifar10\n"
      "  runner data show records/cifar10 --class cat");
  builder.addSubCommand(
      "info", [this]() { return info->getMain(); }, "show what a data set holds");
  builder.addSubCommand(
      "verify", [this]() { return verify->getMain(); }, "read and check every record");
  builder.addSubCommand(
      "show", [this]() { return show->getMain(); }, "write a page with images and their labels");
  return builder.build();
}

}  // namespace runner
