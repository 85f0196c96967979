#include "io/datasets/labels.h"

#include <doctest/doctest.h>
#include <kj/vector.h>

#include "io/testing/scratch.h"
#include "tests/text.h"

namespace io {

namespace {

kj::Array<kj::String> paths(kj::ArrayPtr<const kj::StringPtr> all) {
  return KJ_MAP(path, all) {
    return kj::str(path);
  };
}

}  // namespace

TEST_CASE("parseLabels: only a column `name` of the first line names classes") {
  auto namesIn = [](kj::StringPtr text) {
    return kj::strArray(parseLabels("labels.tsv", text.asBytes(), "").classNames, ", ");
  };
  CHECK(namesIn("#path\tlabel\tname\na.jpg\t0\tant\nb.jpg\t1\tbee\n") == "ant, bee");
  CHECK(namesIn("#path\tlabel\na.jpg\t0\tant\nb.jpg\t1\tbee\n") == "");
  CHECK(namesIn("# made by hand\na.jpg\t0\nb.jpg\t1\n") == "");
}

TEST_CASE("parseLabels: refuses a second line for the same image, with both lines") {
  auto refusal = [](kj::StringPtr text) {
    return thrownBy([&]() { parseLabels("labels.tsv", text.asBytes(), "a/"); });
  };
  CHECK(refusal("#path\tlabel\n1.jpg\t3\n2.jpg\t3\n./1.jpg\t3\n") ==
        "labels.tsv:4: a/1.jpg is on line 2 already. Remove one of the two lines");
  CHECK(refusal("1.jpg 3\n1.jpg 4\n") ==
        "labels.tsv:2: a/1.jpg is on line 1 already, with label 3 instead of 4. Remove one of the "
        "two lines");
}

TEST_CASE("labelsByFolder: folders sorted by path are the classes 0, 1, …") {
  auto config = testConfig("image_folder");
  auto labels =
      labelsByFolder(config, "x", paths({"dog/1.jpg"_kj, "cat/2.jpg"_kj, "dog/3.jpg"_kj}));
  CHECK(KJ_ASSERT_NONNULL(labels.find("cat/2.jpg"_kj)).number == 0);
  CHECK(KJ_ASSERT_NONNULL(labels.find("dog/1.jpg"_kj)).number == 1);
  CHECK(KJ_ASSERT_NONNULL(labels.find("dog/3.jpg"_kj)).number == 1);
}

TEST_CASE("labelsByFolder: refuses folders for training and validation as classes") {
  Scratch scratch;
  scratch.write("photos/train/x", nullptr);
  auto config = testConfig("image_folder");
  auto folder = scratch.path("photos");
  auto refusal = [&](kj::StringPtr images, kj::ArrayPtr<const kj::StringPtr> all) {
    return thrownBy([&]() { labelsByFolder(config, images, paths(all)); });
  };
  CHECK(refusal(folder,
            {"train/cat/1.jpg"_kj, "train/dog/2.jpg"_kj, "val/cat/3.jpg"_kj, "val/dog/4.jpg"_kj}) ==
        kj::str(folder,
            " has the folders train and val, which would become one data set of 4 classes "
            "(train/cat, train/dog, val/cat, …): set data.source to ",
            folder, "/train and data.validation_source to ", folder,
            "/val, or put the labels of all images into labels.tsv beside them"));
  // The same with other names, below other folders, and in an archive.
  CHECK(refusal("x.tar", {"a/Training/cat/1.jpg"_kj, "a/Test/cat/3.jpg"_kj}) ==
        "x.tar has the folders a/Training and a/Test, which would become one data set of 2 classes "
        "(a/Test/cat, a/Training/cat): unpack it and set data.source to its folder a/Training "
        "and data.validation_source to a/Test, or put the labels of all images into labels.tsv "
        "beside them");
  CHECK(refusal(folder, {"cat/train/1.jpg"_kj, "cat/valid/1.jpg"_kj}).size() > 0);
  CHECK(refusal(folder, {"Train/cat/1.jpg"_kj, "VAL/cat/2.jpg"_kj}).size() > 0);
  CHECK(refusal(folder, {"training/cat/1.jpg"_kj, "validation/cat/2.jpg"_kj}).size() > 0);
  CHECK(refusal(folder, {"train/cat/1.jpg"_kj, "test/cat/2.jpg"_kj}).size() > 0);
  // A single such folder, or folders in different places, may be classes.
  CHECK(refusal(folder, {"train/1.jpg"_kj, "bus/1.jpg"_kj}) == "");
  CHECK(refusal(folder, {"train/1.jpg"_kj, "bus/test/1.jpg"_kj}) == "");
  // The same without a folder for training.
  CHECK(tests::contains(refusal(folder, {"test/cat/1.jpg"_kj, "val/cat/2.jpg"_kj}),
      " has the folders val and test, which would become one data set of 2 classes "));
}

TEST_CASE("labelsByKnownFolder: finds classes by their path, or else by their name") {
  auto known = kj::arr(kj::str("train/cat"), kj::str("train/big/dog"), kj::str("train/small/dog"));
  auto labels = labelsByKnownFolder(
      "x.tar", paths({"val/cat/1.jpg"_kj, "train/small/dog/2.jpg"_kj, "cat/3.jpg"_kj}), known);
  CHECK(KJ_ASSERT_NONNULL(labels.find("val/cat/1.jpg"_kj)).number == 0);
  CHECK(KJ_ASSERT_NONNULL(labels.find("train/small/dog/2.jpg"_kj)).number == 2);
  CHECK(KJ_ASSERT_NONNULL(labels.find("cat/3.jpg"_kj)).number == 0);
  CHECK(thrownBy([&]() {
    labelsByKnownFolder("x.tar", paths({"val/dog/1.jpg"_kj, "val/cat/2.jpg"_kj}), known);
  }) == "1 image of x.tar lies in a folder that is not a class of the training images: val/dog. "
        "Rename or remove the folders, or put the labels of all images into labels.tsv");
}

TEST_CASE("labelsByFolder: refuses images beside the folders of the classes") {
  auto config = testConfig("image_folder");
  auto refusal = [&](kj::ArrayPtr<const kj::StringPtr> all) {
    return thrownBy([&]() { labelsByFolder(config, "x.tar", paths(all)); });
  };
  CHECK(refusal({"1.jpg"_kj, "cat/2.jpg"_kj, "dog/3.jpg"_kj, "4.jpg"_kj}) ==
        "2 images of x.tar (1.jpg, 4.jpg) lie beside the folders of the classes (cat, …): put them "
        "into one of these, or the labels of all images into labels.tsv beside them");
  // The same in the one folder that was packed.
  CHECK(refusal({"photos/1.jpg"_kj, "photos/cat/2.jpg"_kj}) ==
        "1 image of x.tar (photos/1.jpg) lies beside the folders of the classes (photos/cat): put "
        "it into one of these, or the labels of all images into labels.tsv beside them");
  // A class may lie in another class if there is a third one.
  CHECK(refusal({"cat/1.jpg"_kj, "cat/tabby/2.jpg"_kj, "dog/3.jpg"_kj}) == "");
  CHECK(refusal({"cat/1.jpg"_kj, "cats/2.jpg"_kj}) == "");
}

}  // namespace io
