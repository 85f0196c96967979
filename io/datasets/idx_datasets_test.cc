// Data sets of the user in MNIST's format.
#include <doctest/doctest.h>

#include "io/datasets/datasets.h"
#include "io/testing/image_folder.h"
#include "tests/text.h"

namespace io {

namespace {

// Three images of 2×3 pixels, and their labels.
constexpr kj::byte IMAGES[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7,
    8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
constexpr kj::byte LABELS[] = {0, 0, 8, 1, 0, 0, 0, 3, 4, 0, 9};

struct IdxFolder: CacheScratch {
  DataConfig config = testConfig("idx", path("letters"));

  IdxFolder() {
    for (auto part: {"train", "test"}) {
      write(kj::str("letters/emnist-", part, "-images-idx3-ubyte"), IMAGES);
      write(kj::str("letters/emnist-", part, "-labels-idx1-ubyte"), LABELS);
    }
  }

  kj::String refusal() {
    return thrownBy([&]() { openDataset(config, unheard()); });
  }
};

}  // namespace

TEST_CASE("idx: images of any size become records, and a changed file is imported again") {
  IdxFolder folder;
  CHECK(factsOf(folder.config) == nullptr);
  auto dataset = openDataset(folder.config, unheard());
  CHECK(dataset->training().count() == 3);
  CHECK(dataset->validation().count() == 3);
  CHECK(dataset->classes() == 10);
  CHECK((KJ_ASSERT_NONNULL(dataset->storedShape()) == ImageShape{1, 2, 3}));
  auto record = RecordReader::open(dataset->training())->read(2);
  CHECK(record.label == 9);
  CHECK(kj::strArray(record.bytes, " ") == "13 14 15 16 17 18");
  CHECK(tests::contains(dataset->training().origin(), "source: emnist-train-images-idx3-ubyte, "));

  auto labels = kj::heapArray<kj::byte>(LABELS);
  labels.back() = 11;
  folder.write("letters/emnist-train-labels-idx1-ubyte", labels);
  CHECK(openDataset(folder.config, unheard())->classes() == 12);
}

TEST_CASE("idx: reads a file only once if it exists both unpacked and compressed") {
  IdxFolder folder;
  folder.write("letters/emnist-train-images-idx3-ubyte.gz", nullptr);
  CHECK(openDataset(folder.config, unheard())->classes() > 0);
}

TEST_CASE("idx: names a file that is missing, or whose content does not match its name") {
  IdxFolder folder;
  auto letters = folder.path("letters");
  folder.write("letters/train-images-idx3-ubyte.gz", nullptr);
  CHECK(folder.refusal() ==
        kj::str(letters,
            " has several files whose name contains images-idx3 and train: "
            "emnist-train-images-idx3-ubyte, train-images-idx3-ubyte.gz. Set data.source to a "
            "folder with one"));
  folder.config.source = folder.path("other");
  CHECK(folder.refusal() == kj::str("there is no folder ", folder.path("other"),
                                ". Set data.source to a folder with files in MNIST's format"));
  folder.write("other/train-images-idx3-ubyte", IMAGES);
  CHECK(folder.refusal() == kj::str(folder.path("other"),
                                " has no file whose name contains labels-idx1 and train. Set "
                                "data.source to a folder with one"));
  for (auto name: {"train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"}) {
    folder.write(kj::str("other/", name), LABELS);
  }
  auto images = kj::heapArray<kj::byte>(IMAGES);
  auto write = [&]() { folder.write("other/t10k-images-idx3-ubyte", images); };
  images[3] = 4;
  write();
  CHECK(folder.refusal() ==
        "the validation files do not begin as images in MNIST's format. Get the files again");
  images[3] = 3;
  images[11] = 3;
  write();
  CHECK(folder.refusal() ==
        "the validation files do not have as many bytes as their header says. Get the files again");
  images[8] = images[12] = 0xff;
  write();
  CHECK(folder.refusal() ==
        "the validation files do not have as many bytes as their header says. Get the files again");
  images[8] = images[12] = images[11] = 0;
  folder.write("other/t10k-images-idx3-ubyte", images.slice(0, 16));
  CHECK(folder.refusal() == "the validation files have images without pixels. Get the files again");
  folder.write("other/t10k-images-idx3-ubyte", IMAGES);
  folder.write("other/t10k-labels-idx1-ubyte", kj::arrayPtr(LABELS, kj::size(LABELS) - 1));
  CHECK(folder.refusal() ==
        "the validation files do not have one label per image. Get the files again");
}

}  // namespace io
