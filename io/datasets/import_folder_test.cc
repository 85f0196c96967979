#include "io/datasets/import_folder.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "io/images/jpeg.h"
#include "io/testing/imported_images.h"
#include "io/testing/scratch.h"

namespace io {

TEST_CASE("importFolder: labels.tsv beside the images gives their labels") {
  Images images;
  images.writeClasses(2);
  auto write = [&](kj::StringPtr text) { images.write("labels.tsv", text.asBytes()); };
  auto path = kj::str(images.folder(), "/labels.tsv");
  write(
      "#path\tlabel\tname\n"
      "cat/10.jpg\t30\tx\ncat/11.jpg\t31\r\n\ndog/10.jpg\t32\ndog/11.jpg\t33");
  auto imported = images.import();
  CHECK(kj::strArray(imported.paths, " ") == "cat/10.jpg cat/11.jpg dog/10.jpg dog/11.jpg");
  CHECK(kj::strArray(imported.labels, " ") == "30 31 32 33");
  CHECK(imported.warnings.size() == 0);

  write("cat/10.jpg\t1\ncat/11.jpg\tminus\n");
  CHECK(images.refusal() ==
        kj::str(path, ":2: each line must have a path, a tab and a label from 0 to 1000000"));
  write("cat/10.jpg\t1\n");
  CHECK(images.refusal() ==
        kj::str("3 of the 4 images of ", images.folder(), " have no label in ", path,
            ": cat/11.jpg, dog/10.jpg, dog/11.jpg. Add their labels, or remove the images"));
  write("cat/10.jpg\t1\ndog/10.jpg\t1\ndog/11.jpg\t1\n");
  CHECK(images.refusal() == kj::str("cat/11.jpg of ", images.folder(), " has no label in ", path,
                                ". Add its label, or remove the image"));
}

TEST_CASE("importFolder: a validation source has the validation images, of the same classes") {
  Images images;
  images.writeClasses(10);
  images.scratch.write("val/dog/1.jpg", jpegOf(1));
  images.scratch.write("val/cat/2.jpg", jpegOf(2));
  images.config.validationSource = images.scratch.path("val");
  auto imported = images.import();
  CHECK(imported.training == 20);
  REQUIRE(imported.paths.size() == 22);
  CHECK(imported.paths[20] == "cat/2.jpg");
  CHECK(imported.labels[20] == 0);
  CHECK(imported.ids[20] == 20);
  CHECK(imported.paths[21] == "dog/1.jpg");
  CHECK(imported.labels[21] == 1);
  CHECK(imported.ids[21] == 21);

  // Validation images with separate labels.
  images.scratch.write("val/labels.tsv", "cat/2.jpg\t7\ndog/1.jpg\t3\n"_kj.asBytes());
  CHECK(images.import().labels[20] == 7);
  // Training images whose labels are numbers only.
  images.scratch.write("val/labels.tsv", "cat/2.jpg\t7\n"_kj.asBytes());
  CHECK(images.refusal().startsWith(kj::str("dog/1.jpg of ", images.scratch.path("val"))));
}

TEST_CASE("importFolder: warns if the same images are for training and for validation") {
  Images images;
  images.writeClasses(2);
  images.config.validationSource = images.folder();
  auto imported = images.import();
  CHECK(imported.paths.size() == 8);
  REQUIRE(imported.warnings.size() == 1);
  CHECK(imported.warnings[0] ==
        kj::str("the images of ", images.folder(),
            " are both for training and for validation, because data.source and "
            "data.validation_source name the same place"));
}

TEST_CASE("importFolder: refuses validation images in a folder of the training images") {
  Images images;
  images.writeClasses(2);
  images.write("val/cat/1.jpg", jpegOf(1));
  images.config.validationSource = images.scratch.path("images/val");
  CHECK(images.refusal() ==
        kj::str(images.folder(), "/val lies in ", images.folder(),
            ", so its images would be both for training and for validation. Move it beside ",
            images.folder()));
}

TEST_CASE(
    "importFolder: refuses a validation archive in a folder whose archives are for training") {
  Images images;
  images.writeClasses(2);
  auto pack = [&](kj::StringPtr name) {
    auto line = kj::str("cd ", images.folder(), " && tar -cf ", name, " cat dog");
    REQUIRE(::system(line.cStr()) == 0);
  };
  pack("train.tar");
  pack("val.tar");
  images.config.validationSource = kj::str(images.folder(), "/val.tar");
  // The folder has images, so that its archives are not read.
  CHECK(images.import().labels.size() == 8);
  REQUIRE(::system(kj::str("cd ", images.folder(), " && rm -r cat dog").cStr()) == 0);
  CHECK(images.refusal() ==
        kj::str(images.folder(), "/val.tar lies in ", images.folder(),
            ", whose archives are read, so its images would be both for training and for "
            "validation. Move it beside ",
            images.folder()));
}

TEST_CASE("importFolder: an archive in a folder with labels.tsv and images is not the source") {
  Images images;
  images.writeClasses(2);
  images.write("labels.tsv", "cat/10.jpg\t0\n"_kj.asBytes());
  REQUIRE(
      ::system(
          kj::str("cd ", images.folder(), " && tar -cf backup.tar cat/10.jpg labels.tsv").cStr()) ==
      0);
  images.write(
      "labels.tsv", "cat/10.jpg\t4\ncat/11.jpg\t4\ndog/10.jpg\t5\ndog/11.jpg\t5\n"_kj.asBytes());
  CHECK(kj::strArray(images.import().labels, " ") == "4 4 5 5");
}

TEST_CASE("importFolder: refuses validation images of unknown classes") {
  Images images;
  images.writeClasses(2);
  images.scratch.write("val/bird/1.jpg", jpegOf(1));
  images.config.validationSource = images.scratch.path("val");
  CHECK(images.refusal() ==
        kj::str("1 image of ", images.scratch.path("val"),
            " lies in a folder that is not a class of the training images: bird. Rename or remove "
            "the folders, or put the labels of all images into labels.tsv"));
  kj::Vector<kj::String> lines;
  for (auto name: {"cat/10.jpg", "cat/11.jpg", "dog/10.jpg", "dog/11.jpg"}) {
    lines.add(kj::str(name, "\t1\n"));
  }
  images.write("labels.tsv", kj::str(kj::strArray(lines, "")).asBytes());
  CHECK(images.refusal() == kj::str("the classes of the training images are those of ",
                                images.folder(),
                                "/labels.tsv. Give the validation images a file of labels, too"));
  images.config.validationSource = images.scratch.path("nothing");
  CHECK(
      images.refusal() == kj::str("there is nothing at ", images.scratch.path("nothing"),
                              ". Set data.validation_source to a folder or an archive of images"));
}

TEST_CASE("importFolder: checks validation images and class names before it reads an image") {
  Images images;
  images.writeClasses(2);
  images.write("cat/10.jpg", nullptr);
  CHECK(images.refusal().startsWith("cannot import cat/10.jpg of "));
  images.config.classNames = images.scratch.write("names", "cat\n"_kj.asBytes());
  CHECK(images.refusal().startsWith(kj::str(images.scratch.path("names"), " names 1 class, ")));
  images.config.classNames = nullptr;

  auto validation = images.scratch.path("val");
  images.config.validationSource = kj::str(validation);
  images.scratch.write("val/notes.txt", nullptr);
  CHECK(images.refusal().startsWith(kj::str("there is no image in ", validation, ": set ")));
  images.scratch.write("val/bird/1.jpg", jpegOf(1));
  CHECK(images.refusal().startsWith(
      kj::str("1 image of ", validation, " lies in a folder that is not a class ")));
  images.scratch.write("val/labels.tsv", "bird/1.jpg\t0\nbird/2.jpg\t0\n"_kj.asBytes());
  CHECK(images.refusal() ==
        kj::str(validation, " has 1 of the 2 images that ", validation,
            "/labels.tsv names. Missing: bird/2.jpg. Add them, or remove their lines"));
}

TEST_CASE("importFolder: labels.tsv in an archive gives the labels of its own folder") {
  // The archive of the folder's content, and that of a folder above.
  for (auto from: {"images", ""}) {
    Images images;
    images.write("10.jpg", jpegOf(1));
    images.write("a/11.jpg", jpegOf(2));
    images.write("labels.tsv", kj::StringPtr("10.jpg\t7\na/11.jpg\t5\n").asBytes());
    images.pack(from);
    auto imported = images.import();
    for (auto i: kj::indices(imported.paths)) {
      CHECK(imported.labels[i] == (imported.paths[i].endsWith("10.jpg") ? 7 : 5));
    }
    CHECK(imported.paths.size() == 2);
    CHECK(imported.warnings.size() == 0);
  }
}

TEST_CASE(
    "importFolder: refuses an image that an archive's labels.tsv lacks, and a second labels.tsv") {
  Images images;
  images.write("10.jpg", jpegOf(1));
  images.write("a/11.jpg", jpegOf(2));
  images.write("labels.tsv", kj::StringPtr("10.jpg\t7\n").asBytes());
  auto archive = images.pack("images");
  CHECK(images.refusal() ==
        kj::str("a/11.jpg of ", archive,
            " has no label in its labels.tsv. Add its label, or remove the image"));
  images.write("a/labels.tsv", kj::StringPtr("11.jpg\t7\n").asBytes());
  images.pack("images");
  CHECK(images.refusal().startsWith(kj::str(archive, " has two label files, its ")));
}

TEST_CASE("importFolder: of several entries of one name the last one counts, as for tar") {
  Images images;
  images.writeClasses(1);
  auto archive = images.pack("images");
  images.write("cat/10.jpg", jpegOf(200));
  images.write("cat/11.jpg", jpegOf(201));
  // One name without `./`, and one with it.
  for (auto name: {"cat/10.jpg", "./cat/10.jpg", "cat/11.jpg"}) {
    auto command = kj::str("tar rf ", archive, " -C ", images.folder(), " ", name);
    REQUIRE(::system(command.cStr()) == 0);
  }
  for (bool hasFileOfLabels: {false, true}) {
    if (hasFileOfLabels) {
      images.scratch.write(
          "labels.tsv", kj::StringPtr("./cat/10.jpg\t0\ncat/11.jpg\t0\ndog/10.jpg\t1\n").asBytes());
    }
    auto imported = images.import();
    CHECK(kj::strArray(imported.paths, " ") == "dog/10.jpg cat/10.jpg cat/11.jpg");
    REQUIRE(imported.warnings.size() == 1);
    CHECK(imported.warnings[0] ==
          kj::str(archive,
              " has several entries of 1 name. The last entry of each is used: cat/10.jpg"));
    auto db = RecordDb::open(images.scratch.path("training.mdb"));
    CHECK(RecordReader::open(*db)->read(1).bytes == jpegOf(200));
  }
}

TEST_CASE("importFolder: a file that was appended to a tar counts, not an earlier hard link") {
  Images images;
  images.writeClasses(1);
  auto run = [&](kj::StringPtr command) {
    REQUIRE(::system(kj::str("cd ", images.folder(), " && ", command).cStr()) == 0);
  };
  run("ln cat/10.jpg dog/11.jpg && tar cf ../images.tar cat dog");
  REQUIRE(::unlink(images.scratch.path("images/dog/11.jpg").cStr()) == 0);
  images.write("dog/11.jpg", jpegOf(200));
  run("tar rf ../images.tar dog/11.jpg");
  images.config.source = images.scratch.path("images.tar");
  auto imported = images.import();
  CHECK(kj::strArray(imported.paths, " ") == "cat/10.jpg dog/10.jpg dog/11.jpg");
  REQUIRE(imported.warnings.size() == 1);
  CHECK(imported.warnings[0] ==
        kj::str(images.scratch.path("images.tar"),
            " has several entries of 1 name. The last entry of each is used: dog/11.jpg"));
  auto db = RecordDb::open(images.scratch.path("training.mdb"));
  CHECK(RecordReader::open(*db)->read(2).bytes == jpegOf(200));
}

TEST_CASE(
    "importFolder: labels.tsv may write a letter and its accent as two characters or as one") {
  for (bool isArchive: {false, true}) {
    for (auto name: {"Ka\xcc\x88se.jpg"_kj, "K\xc3\xa4se.jpg"_kj}) {
      for (auto label: {"Ka\xcc\x88se.jpg\t7\n"_kj, "K\xc3\xa4se.jpg\t7\n"_kj}) {
        Images images;
        images.write(isArchive ? "x.jpg" : name, jpegOf(1));
        if (isArchive) {
          // A tar that says that its names are UTF-8, as macOS writes it.
          auto archive = images.scratch.path("images.tar");
          auto command = kj::str("tar --format=posix --pax-option='path:=", name, "' -cf ", archive,
              " -C ", images.folder(), " x.jpg");
          REQUIRE(::system(command.cStr()) == 0);
          images.config.source = kj::mv(archive);
        }
        images.scratch.write(isArchive ? "labels.tsv" : "images/labels.tsv", label.asBytes());
        CHECK(kj::strArray(images.import().labels, " ") == "7");
      }
    }
  }
}

TEST_CASE("importFolder: labels.tsv may begin with UTF-8's byte-order mark") {
  Images images;
  images.write("10.jpg", jpegOf(1));
  images.write("11.jpg", jpegOf(2));
  images.write("labels.tsv", kj::StringPtr("\xef\xbb\xbf"
                                           "10.jpg\t7\n11.jpg\t5\n")
                                 .asBytes());
  CHECK(kj::strArray(images.import().labels, " ") == "7 5");
}

TEST_CASE("importFolder: names a source that is a link to itself") {
  Images images;
  REQUIRE(::symlink("images", images.folder().cStr()) == 0);
  CHECK(images.refusal() == kj::str(images.folder(),
                                " (a link to itself) is not a folder or an archive. Set "
                                "data.source to a folder or an archive "
                                "of images"));
}

TEST_CASE("importFolder: names a labelled image that is missing, with the reason") {
  Images images;
  images.writeClasses(2);
  REQUIRE(::symlink("nowhere", images.scratch.path("images/z.jpg").cStr()) == 0);
  auto path = kj::str(images.folder(), "/labels.tsv");
  images.write(
      "labels.tsv", kj::StringPtr("cat/10.jpg\t0\ncat/11.jpg\t0\ndog/10.jpg\t1\ndog/11.jpg\t1\n"
                                  "z.jpg\t1\ndog/12.jpg\t1\ndog/13.gif\t1\n")
                        .asBytes());
  CHECK(images.refusal() ==
        kj::str(images.folder(), " has 4 of the 7 images that ", path,
            " names. Missing: z.jpg (a link to nothing), dog/12.jpg, dog/13.gif (its name does not "
            "end in .jpeg, .jpg or .png). Add them, or remove their lines"));
}

TEST_CASE("importFolder: refuses or leaves out a folder that may not be searched, by policy") {
  Images images;
  images.writeClasses(2);
  images.write("eel/1.jpg", jpegOf(1));
  AsOrdinaryUser user;
  auto closed = images.scratch.path("images/eel");
  REQUIRE(::chmod(closed.cStr(), 0444) == 0);
  auto entry = kj::str("1 entry of ", images.folder());
  CHECK(images.refusal() == kj::str("cannot read ", entry,
                                ": eel (Permission denied); give yourself permission to "
                                "read and search them, or set data.on_bad_record = \"skip\""));
  images.skipBad();
  auto imported = images.import();
  CHECK(imported.paths.size() == 4);
  REQUIRE(imported.warnings.size() == 1);
  CHECK(imported.warnings[0] ==
        kj::str("left out ", entry,
            " that cannot be read: eel (Permission denied) (on_bad_record = \"skip\")"));
  REQUIRE(::chmod(images.folder().cStr(), 0444) == 0);
  CHECK(images.refusal() ==
        kj::str("cannot read the folder ", images.folder(), ": Permission denied"));
  REQUIRE(::chmod(images.folder().cStr(), 0755) == 0);
  REQUIRE(::chmod(closed.cStr(), 0755) == 0);
}

TEST_CASE("importFolder: names a class that may not be read, although only one class is left") {
  Images images;
  images.writeClasses(2);
  AsOrdinaryUser user;
  auto closed = images.scratch.path("images/dog");
  REQUIRE(::chmod(closed.cStr(), 0) == 0);
  CHECK(images.refusal().startsWith(
      kj::str("cannot read 1 entry of ", images.folder(), ": dog (Permission denied)")));
  REQUIRE(::chmod(closed.cStr(), 0755) == 0);
}

TEST_CASE("importFolder: refuses a labels.tsv that is a link to nothing") {
  Images images;
  images.writeClasses(2);
  REQUIRE(::symlink("nowhere", images.scratch.path("images/labels.tsv").cStr()) == 0);
  CHECK(images.refusal() ==
        kj::str(images.folder(), "/labels.tsv is a link to nothing. Repair or remove it"));
}

TEST_CASE("importFolder: names links to nothing, and files that are not named like images") {
  Images images;
  images.writeClasses(2);
  REQUIRE(::symlink("nowhere", images.scratch.path("images/dog/z.jpg").cStr()) == 0);
  REQUIRE(::mkfifo(images.scratch.path("images/cat/pipe").cStr(), 0666) == 0);
  images.write("dog/x.GIF", nullptr);
  images.write("dog/y.jpg~", nullptr);
  images.write("README", nullptr);
  auto imported = images.import();
  CHECK(imported.paths.size() == 4);
  REQUIRE(imported.warnings.size() == 2);
  CHECK(imported.warnings[0] ==
        kj::str("left out 2 entries of ", images.folder(),
            " that are not regular files: cat/pipe (a pipe), dog/z.jpg (a link to nothing)"));
  CHECK(imported.warnings[1] ==
        kj::str("left out 3 files of ", images.folder(),
            " whose names do not end in .jpeg, .jpg or .png: README, dog/x.GIF, dog/y.jpg~"));
}

TEST_CASE("importFolder: names the empty folders of a folder and of its archive") {
  Images images;
  images.writeClasses(2);
  for (auto name: {"images/eel", "images/eel/young", "images/fox"}) {
    REQUIRE(::mkdir(images.scratch.path(name).cStr(), 0777) == 0);
  }
  images.write("gnu/.note", nullptr);
  auto expect = [&](kj::StringPtr place) {
    auto imported = images.import();
    CHECK(imported.paths.size() == 4);
    REQUIRE(imported.warnings.size() == 2);
    auto begin = kj::str("left out 2 empty folders of ", place, ": ");
    CHECK(imported.warnings[0].startsWith(begin));
    auto names = imported.warnings[0].slice(begin.size());
    bool bothOrders = names == "eel/young, fox" || names == "fox, eel/young";
    CHECK(bothOrders);
    CHECK(imported.warnings[1] ==
          kj::str("left out 1 hidden file or folder of ", place, ": gnu/.note"));
  };
  expect(images.folder());
  expect(images.pack("images"));
}

TEST_CASE("importFolder: names files of labels that are not used, but not the one that is") {
  Images images;
  images.write("a.jpg", jpegOf(1));
  images.write("b.jpg", jpegOf(2));
  auto labels = images.scratch.path("images/labels.tsv");
  auto list = images.scratch.path("images/list.txt");
  images.write("labels.tsv", "a.jpg\t1\nb.jpg\t0\n"_kj.asBytes());
  images.write("list.txt", "a.jpg 0\nb.jpg 1\n"_kj.asBytes());
  auto unused = [&](kj::StringPtr place, kj::StringPtr name) {
    return kj::str(
        "left out 1 file of ", place, " whose name does not end in .jpeg, .jpg or .png: ", name);
  };
  images.config.labels = kj::str(list);
  auto imported = images.import();
  CHECK(kj::strArray(imported.labels, " ") == "0 1");
  REQUIRE(imported.warnings.size() == 1);
  CHECK(imported.warnings[0] == unused(images.folder(), "labels.tsv"));
  images.config.labels = kj::str(labels);
  imported = images.import();
  CHECK(kj::strArray(imported.labels, " ") == "1 0");
  REQUIRE(imported.warnings.size() == 1);
  CHECK(imported.warnings[0] == unused(images.folder(), "list.txt"));

  // An archive with labels inside and beside it.
  images.config.labels = nullptr;
  REQUIRE(::unlink(list.cStr()) == 0);
  images.write("a.cls", "7"_kj.asBytes());
  auto beside = images.scratch.write("labels.tsv", "a.jpg\t0\nb.jpg\t1\n"_kj.asBytes());
  auto archive = images.pack("images");
  imported = images.import();
  REQUIRE(imported.warnings.size() == 2);
  CHECK(imported.warnings[0] == kj::str("1 sample of ", archive,
                                    " has unused .cls files, because the labels come from ", beside,
                                    ": a"));
  CHECK(imported.warnings[1] == unused(archive, "labels.tsv"));
}

TEST_CASE("importFolder: a folder and its archive give the same images, without hidden ones") {
  Images images;
  images.writeClasses(2);
  images.write("cat/._10.jpg", jpegOf(9));
  images.write(".trash/cat/12.jpg", jpegOf(9));
  images.write(".trash/cat/13.jpg", jpegOf(9));
  auto expect = [&](kj::StringPtr place) {
    auto imported = images.import();
    CHECK(imported.paths.size() == 4);
    REQUIRE(imported.warnings.size() == 1);
    auto begin = kj::str("left out 2 hidden files or folders of ", place, ": ");
    CHECK(imported.warnings[0].startsWith(begin));
    auto names = imported.warnings[0].slice(begin.size());
    bool bothOrders = names == ".trash, cat/._10.jpg" || names == "cat/._10.jpg, .trash";
    CHECK(bothOrders);
  };
  expect(images.folder());
  expect(images.pack("images"));
}

TEST_CASE("importFolder: refuses by name or leaves out a file that is not an image, by policy") {
  Images images;
  images.writeClasses(3);
  images.write("cat/11.jpg", kj::StringPtr("text").asBytes());
  CHECK(images.refusal() == kj::str("cannot import cat/11.jpg of ", images.folder(),
                                ": it is neither a JPEG nor a PNG file. Repair or remove it, or "
                                "set data.on_bad_record = \"skip\""));
  images.skipBad();
  auto imported = images.import();
  CHECK(kj::strArray(imported.paths, " ") ==
        "cat/10.jpg cat/12.jpg dog/10.jpg dog/11.jpg dog/12.jpg");
  REQUIRE(imported.warnings.size() == 1);
  CHECK(imported.warnings[0] ==
        "cat/11.jpg is neither a JPEG nor a PNG file; left out (on_bad_record = \"skip\")");
}

TEST_CASE("importFolder: names a class that has no image left") {
  Images images;
  images.writeClasses(2);
  images.write("eel/1.jpg", nullptr);
  images.skipBad();
  auto imported = images.import();
  REQUIRE(imported.warnings.size() == 2);
  CHECK(imported.warnings[1] == kj::str("no image is left of 1 class of ", images.folder(),
                                    ": eel (on_bad_record = \"skip\")"));
}

TEST_CASE("importFolder: refuses or leaves out a JPEG file that was cut short, by policy") {
  Images images;
  images.writeClasses(3);
  auto whole = jpegOf(1);
  images.write("cat/11.jpg", whole.slice(0, whole.size() - 8));
  CHECK(images.refusal().startsWith(
      kj::str("cannot import cat/11.jpg of ", images.folder(), ": it cannot be decoded: ")));
  images.skipBad();
  auto imported = images.import();
  CHECK(kj::strArray(imported.paths, " ") ==
        "cat/10.jpg cat/12.jpg dog/10.jpg dog/11.jpg dog/12.jpg");
  REQUIRE(imported.warnings.size() == 1);
  CHECK(imported.warnings[0].startsWith("cat/11.jpg cannot be decoded: "));
}

TEST_CASE("importFolder: prints names without their control characters") {
  Images images;
  images.writeClasses(2);
  images.write("cat/a\x1b[31m\n.jpg", nullptr);
  images.write("cat/b\t.gif", nullptr);
  images.skipBad();
  auto imported = images.import();
  REQUIRE(imported.warnings.size() == 2);
  CHECK(
      imported.warnings[1].startsWith("cat/a\\x1b[31m\\x0a.jpg is neither a JPEG nor a PNG file"));
  CHECK(imported.warnings[0].endsWith(": cat/b\\x09.gif"));
}

TEST_CASE("importFolder: accepts a folder name that ends in a slash") {
  Images images;
  images.writeClasses(2);
  auto place = [&](kj::StringPtr source) {
    images.config.source = kj::str(source);
    return findImages(images.config, nullptr).images;
  };
  CHECK(place(kj::str(images.folder(), "//")) == images.folder());
  CHECK(place("/") == "/");
}

TEST_CASE("importFolder: reads the images after one with a bad header") {
  Images images;
  images.writeClasses(20);
  auto bad = jpegOf(1);
  // The first table of quantization steps: the marker FF DB, a length of two bytes, its number.
  const kj::byte marker[] = {0xff, 0xdb};
  auto table = static_cast<kj::byte*>(memmem(bad.begin(), bad.size(), marker, 2));
  REQUIRE(table != nullptr);
  table[4] = 0x0f;
  images.write("cat/10.jpg", bad);
  images.skipBad();
  auto imported = images.import();
  CHECK(imported.paths.size() == 39);
  REQUIRE(imported.warnings.size() == 1);
  CHECK(imported.warnings[0] ==
        "cat/10.jpg has a damaged JPEG header: Bogus DQT index 15; left "
        "out (on_bad_record = \"skip\")");
}

TEST_CASE("importFolder: leaves out a file that is too large or may not be read, by policy") {
  Images images;
  images.writeClasses(2);
  images.write("cat/11.jpg", nullptr);
  REQUIRE(::truncate(images.scratch.path("images/cat/11.jpg").cStr(), (1 << 28) + 1) == 0);
  CHECK(images.refusal().startsWith("cannot import cat/11.jpg of "));
  images.skipBad();
  REQUIRE(::symlink("/proc/self/mem", images.scratch.path("images/dog/12.jpg").cStr()) == 0);
  auto imported = images.import();
  CHECK(kj::strArray(imported.paths, " ") == "cat/10.jpg dog/10.jpg dog/11.jpg");
  REQUIRE(imported.warnings.size() == 3);
  CHECK(imported.warnings[0] ==
        "cat/11.jpg has 268435457 bytes, but at most 268435456 are allowed; left "
        "out (on_bad_record = \"skip\")");
  CHECK(imported.warnings[1].startsWith("dog/12.jpg "));
  CHECK(imported.warnings[2] ==
        kj::str("left out 2 of the 5 images of ", images.folder(), " (on_bad_record = \"skip\")"));
}

TEST_CASE("importFolder: refuses by name an image whose resized side is too long for a JPEG file") {
  Images images;
  images.writeClasses(1);
  auto line = kj::heapArray<kj::byte>(3 * 4000);
  memset(line.begin(), 100, line.size());
  images.write("cat/long.jpg", encodeJpeg({{3, 4000, 1}, Layout::PLANES, line}));
  images.config.resizeShortSide = 17;
  CHECK(images.refusal() == kj::str("cannot import cat/long.jpg of ", images.folder(),
                                ": it would have 17×68000 pixels when resized by "
                                "data.resize_short_side; a side of a JPEG file has at most 65500. "
                                "Repair or remove it, or set data.on_bad_record = \"skip\""));
}

TEST_CASE("importFolder: refuses a folder without images, and one without a good image") {
  Images images;
  images.write("x.txt", nullptr);
  CHECK(images.refusal() == kj::str("there is no image in ", images.folder(),
                                ": set data.source to a folder or an archive of images, whose "
                                "names end in .jpeg, .jpg or "
                                ".png"));
  images.skipBad();
  images.write("cat/1.jpg", nullptr);
  images.write("dog/2.jpg", nullptr);
  CHECK(images.refusal() ==
        kj::str("no image of ", images.folder(), " can be read: all 2 were left out"));
}

}  // namespace io
