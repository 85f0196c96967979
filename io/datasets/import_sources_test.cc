// The forms in which people have images and labels.
#include <doctest/doctest.h>
#include <png.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "io/datasets/import_folder.h"
#include "io/testing/archive_files.h"
#include "io/testing/imported_images.h"
#include "io/testing/png_file.h"
#include "io/testing/record_io_file.h"
#include "tests/text.h"

namespace io {

namespace {

kj::String textOf(kj::ArrayPtr<const kj::byte> bytes) {
  return kj::heapString(bytes.asChars());
}

kj::String joined(kj::ArrayPtr<const kj::String> texts) {
  return kj::strArray(texts, " ");
}

}  // namespace

TEST_CASE("importFolder: PNG files become records like JPEG files") {
  Images images;
  images.writeClasses(2);
  kj::byte grey[] = {7, 8, 9, 10};
  images.write("cat/12.PNG", pngOf({8, PNG_COLOR_TYPE_GRAY}, 2, 2, grey));
  images.config.encoding = Encoding::RAW;
  auto imported = images.import();
  CHECK(joined(imported.paths) == "cat/10.jpg cat/11.jpg cat/12.PNG dog/10.jpg dog/11.jpg");
  auto db = RecordDb::open(images.scratch.path("training.mdb"));
  auto record = RecordReader::open(*db)->read(2);
  CHECK((record.shape == ImageShape{3, 2, 2}));
  CHECK(kj::strArray(record.bytes, " ") == "7 8 9 10 7 8 9 10 7 8 9 10");
}

TEST_CASE("importFolder: classes have the names of their folders") {
  Images images;
  images.writeClasses(1);
  CHECK(joined(images.import().classNames) == "cat dog");
  // Names that occur twice are paths.
  images.write("more/cat/1.jpg", jpegOf(1));
  CHECK(joined(images.import().classNames) == "cat dog more/cat");
}

TEST_CASE("importFolder: labels.tsv may name the classes") {
  Images images;
  images.writeClasses(2);
  auto write = [&](kj::StringPtr text) { images.write("labels.tsv", text.asBytes()); };
  write(
      "#path\tlabel\twnid\tname\ncat/10.jpg\t2\tn1\ttiger cat\ncat/11.jpg\t2\tn1\ttiger cat\n"
      "dog/10.jpg\t0\tn2\tpug\ndog/11.jpg\t0\n");
  CHECK(joined(images.import().classNames) == "pug  tiger cat");
  write("#path\tlabel\tname\ncat/10.jpg\t0\ta\ncat/11.jpg\t0\tb\ndog/10.jpg\t1\ndog/11.jpg\t1\n");
  CHECK(images.refusal() ==
        kj::str(images.folder(), "/labels.tsv:3: class 0 is called b here, and a above"));
}

TEST_CASE("importFolder: a file of class names replaces the names of folders") {
  Images images;
  images.writeClasses(1);
  auto names = [&](kj::StringPtr text) {
    images.config.classNames = images.scratch.write("names.txt", text.asBytes());
  };
  names("tiger cat\r\npug\n");
  CHECK(kj::strArray(images.import().classNames, ", ") == "tiger cat, pug");
  // As in ImageNet's synset_words.txt: each line has a folder and its class, in any order. Not
  // every folder exists.
  names("dog pug, pug-dog\nbird robin\ncat tiger cat\n");
  CHECK(kj::strArray(images.import().classNames, "; ") == "tiger cat; pug, pug-dog");
  names("one\n");
  CHECK(images.refusal() == kj::str(images.scratch.path("names.txt"),
                                " names 1 class, but there are 2. Give each class a line, in the "
                                "order of their folders"));
  names("dog pug\ndog terrier\n");
  CHECK(images.refusal() == kj::str(images.scratch.path("names.txt"),
                                ":2: the folder dog has a line above. Remove one of the two"));
  names("one\n\ntwo\n");
  CHECK(images.refusal() ==
        kj::str(images.scratch.path("names.txt"), ":2: each line must name a class"));
}

TEST_CASE("importFolder: warns of labels that are counted from 1, and names labels without names") {
  Images images;
  images.writeClasses(1);
  images.config.labels = images.scratch.write("list", "cat/10.jpg 1\ndog/10.jpg 2\n"_kj.asBytes());
  auto imported = images.import();
  REQUIRE(imported.warnings.size() == 1);
  CHECK(imported.warnings[0] == kj::str(images.scratch.path("list"),
                                    " has all labels from 1 to 2, but not 0. Labels count from 0, "
                                    "so the network gets a class "
                                    "without images"));
  images.config.classNames = images.scratch.write("names", "cat\ndog\n"_kj.asBytes());
  CHECK(images.refusal() == kj::str(images.scratch.path("names"), " names 2 classes, but ",
                                images.scratch.path("list"),
                                " has labels up to 2. Give each label from 0 on a line"));
}

TEST_CASE("importFolder: warns of labels that only validation images have") {
  Images images;
  images.writeClasses(1);
  images.config.labels = images.scratch.write("list", "cat/10.jpg 0\n"_kj.asBytes());
  images.config.validationLabels = images.scratch.write("more", "dog/10.jpg 7\n"_kj.asBytes());
  auto imported = images.import();
  REQUIRE(imported.warnings.size() == 1);
  CHECK(imported.warnings[0] == "1 label of validation images, but of no training image: 7");
}

TEST_CASE("importFolder: lists of labels choose training and validation images of one folder") {
  Images images;
  images.writeClasses(3);
  auto list = [&](kj::StringPtr name, kj::StringPtr text) {
    return images.scratch.write(name, text.asBytes());
  };
  // As MXNet's im2rec writes them, and as Caffe has them.
  images.config.labels = list("train.lst", "7\t4.000000\tcat/11.jpg\n9\t0\t./dog/10.jpg\n");
  images.config.validationLabels = list("val.txt", "dog/11.jpg 0\ncat/10.jpg 4\n");
  auto imported = images.import();
  CHECK(joined(imported.paths) == "cat/11.jpg dog/10.jpg cat/10.jpg dog/11.jpg");
  CHECK(kj::strArray(imported.labels, " ") == "4 0 4 0");
  CHECK(imported.training == 2);
  REQUIRE(imported.warnings.size() == 2);
  CHECK(imported.warnings[0] == kj::str("left out 2 images of ", images.folder(), " that ",
                                    images.scratch.path("train.lst"),
                                    " does not name: cat/12.jpg, dog/12.jpg"));

  images.config.labels = list("train.lst", "7\t4\tcat/11.jpg\n9\t0\tdog/11.jpg\n");
  imported = images.import();
  REQUIRE(imported.warnings.size() == 3);
  CHECK(imported.warnings[1] == kj::str("1 image of ", images.folder(),
                                    " is both for training and for validation: "
                                    "dog/11.jpg"));

  images.config.labels = list("train.lst", "7\t4\t1\tcat/11.jpg\n");
  CHECK(
      images.refusal() ==
      kj::str(images.scratch.path("train.lst"),
          ":1: each line must have a number, a tab, a label from 0 to 1000000, a tab and a path"));
  images.config.labels = list("train.txt", "cat/11.jpg 4\ndog/10.jpg\n");
  CHECK(images.refusal() ==
        kj::str(images.scratch.path("train.txt"),
            ":2: each line must have a path, a tab and a label from 0 to 1000000"));
  images.config.labels = list("train.txt", "images/cat/11.jpg 4\n");
  CHECK(
      images.refusal() ==
      kj::str(images.scratch.path("train.txt"), " names none of the 6 images of ", images.folder(),
          ": paths in it must be relative to that folder or archive, such as cat/10.jpg, "
          "cat/11.jpg, cat/12.jpg, dog/10.jpg, dog/11.jpg, …"));
  images.config.labels = images.scratch.path("none.txt");
  CHECK(images.refusal() == kj::str("there is no file ", images.scratch.path("none.txt"),
                                ". Set data.labels to a file of labels"));
  auto pipe = images.scratch.path("pipe");
  REQUIRE(::mkfifo(pipe.cStr(), 0666) == 0);
  images.config.labels = kj::str(pipe);
  CHECK(images.refusal() ==
        kj::str(pipe, " (a pipe) is not a file. Set data.labels to a file of labels"));
}

TEST_CASE("importFolder: a tar of tars has one class for each tar, as ImageNet's") {
  Images images;
  auto jpeg = textOf(jpegOf(3));
  auto one = kj::str("x_1.JPEG=", jpeg), two = kj::str("x_2.JPEG=", jpeg);
  kj::StringPtr pair[] = {one, two};
  writeTar(images.scratch.write("images/n02.tar", nullptr), pair);
  writeTar(images.scratch.write("images/n01.tar", nullptr), kj::arrayPtr(pair, 1));
  auto check = [](const Imported& imported, kj::StringPtr paths, kj::StringPtr labels) {
    CHECK(joined(imported.paths) == paths);
    CHECK(kj::strArray(imported.labels, " ") == labels);
    CHECK(joined(imported.classNames) == "n01 n02");
    CHECK(imported.warnings.size() == 0);
  };
  check(images.import(), "n01/x_1.JPEG n02/x_1.JPEG n02/x_2.JPEG", "0 1 1");
  auto outer = images.scratch.path("train.tar");
  auto command = kj::str("tar cf ", outer, " -C ", images.folder(), " n02.tar n01.tar");
  REQUIRE(::system(command.cStr()) == 0);
  images.config.source = kj::str(outer);
  check(images.import(), "n02/x_1.JPEG n02/x_2.JPEG n01/x_1.JPEG", "1 1 0");
}

TEST_CASE("importFolder: shards of WebDataset have their labels in .cls files") {
  Images images;
  auto jpeg = textOf(jpegOf(3));
  auto image = kj::str("a/7.x.jpg=", jpeg), other = kj::str("8.jpg=", jpeg);
  auto write = [&](kj::ArrayPtr<const kj::StringPtr> entries) {
    writeTar(images.scratch.write("images/shard-0.tar", nullptr), entries);
  };
  write({image, "a/7.cls=5"_kj, "8.cls=0\n"_kj, "8.json={}"_kj, other});
  auto imported = images.import();
  CHECK(joined(imported.paths) == "shard-0/a/7.x.jpg shard-0/8.jpg");
  CHECK(kj::strArray(imported.labels, " ") == "5 0");
  CHECK(imported.classNames.size() == 0);
  REQUIRE(imported.warnings.size() == 1);
  CHECK(tests::contains(imported.warnings[0], "left out 1 file of "));
  CHECK(tests::contains(imported.warnings[0], ": shard-0/8.json"));

  auto mask = kj::str("a/7.mask.jpg=", jpeg);
  write({image, mask, "a/7.cls=5"_kj, "8.cls=0\n"_kj, "9.cls=0\n"_kj, other});
  imported = images.import();
  CHECK(imported.paths.size() == 3);
  REQUIRE(imported.warnings.size() == 2);
  CHECK(
      imported.warnings[0] == kj::str("1 sample of ", images.folder(), " has no image: shard-0/9"));
  CHECK(imported.warnings[1] == kj::str("1 sample of ", images.folder(),
                                    " has several images, each of which is used: shard-0/a/7"));
  write({image, "a/7.cls=5"_kj, other});
  CHECK(images.refusal() == kj::str("shard-0/8.jpg of ", images.folder(),
                                " has no label in its .cls files. Add its label, or remove the "
                                "image"));
  write({image, "a/7.cls=cat"_kj});
  CHECK(images.refusal() == kj::str("shard-0/a/7.cls of ", images.folder(),
                                " holds cat, which is not a label from 0 to 1000000"));
}

TEST_CASE("importFolder: a RecordIO file contains its labels, also for validation") {
  Images images;
  auto jpeg = jpegOf(3);
  kj::byte grey[] = {7, 8, 9, 10};
  auto png = pngOf({8, PNG_COLOR_TYPE_GRAY}, 2, 2, grey);
  images.config.source = images.scratch.write("train.rec", recordIoOf({{3, jpeg}, {0, png}}));
  images.config.validationSource = images.scratch.write("val.rec", recordIoOf({{3, jpeg}}));
  auto imported = images.import();
  CHECK(joined(imported.paths) == "0.jpg 1.png 0.jpg");
  CHECK(kj::strArray(imported.labels, " ") == "3 0 3");
  CHECK(imported.training == 2);
  CHECK(imported.warnings.size() == 0);
  auto text = "not an image"_kj.asBytes();
  images.config.source = images.scratch.write("train.rec", recordIoOf({{3, jpeg}, {0, text}}));
  imported = images.import();
  REQUIRE(imported.warnings.size() == 1);
  CHECK(tests::contains(imported.warnings[0], " .jpg or .png: 1.bin"));
}

}  // namespace io
