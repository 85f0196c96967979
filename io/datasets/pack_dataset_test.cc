// Tests imports into a folder of the user's choice.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "io/datasets/datasets.h"
#include "io/datasets/import.h"
#include "io/images/jpeg.h"
#include "io/images/mean_file.h"
#include "io/paths.h"
#include "io/records/record_db.h"
#include "io/testing/image_folder.h"
#include "io/testing/scratch.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace io {

TEST_CASE("packDataset: refuses a path that is not a new folder before it reads anything") {
  Scratch scratch;
  auto config = testConfig("image_folder", scratch.path("images"));
  CHECK(thrownBy([&]() { packDataset(config, "/dev/null", unheard()); }) ==
        "cannot write records to /dev/null (a device). Name a new folder");
}

TEST_CASE("packDataset: refuses a folder in the source") {
  ImageFolder scratch;
  auto source = scratch.path("images");
  for (auto name: {"packed", "cat/packed", "cat/../packed"}) {
    auto into = kj::str(source, "/", name);
    CHECK(thrownBy([&]() { packDataset(scratch.config, into, unheard()); }) ==
          kj::str(into, " lies in ", source,
              ", so its files would be taken for images. Name a folder elsewhere"));
  }
}

TEST_CASE("packDataset: a failure names the flags of pack_records, and leaves no files") {
  ImageFolder scratch;
  auto& config = scratch.config;
  config.names.skip = "give --skip-bad";
  // The header of this JPEG file is good.
  auto planes = kj::heapArray<kj::byte>(3 * 16 * 16);
  for (auto i: kj::indices(planes)) planes[i] = i * 37 % 251;
  auto file = encodeJpeg({{3, 16, 16}, Layout::PLANES, planes});
  scratch.write("images/cat/103.jpg", file.slice(0, file.size() * 4 / 5));
  auto packed = scratch.path("packed");
  auto message = thrownBy([&]() { packDataset(config, packed, unheard()); });
  CHECK(message.startsWith("cannot import cat/103.jpg of "));
  CHECK(message.endsWith(". Repair or remove it, or give --skip-bad"));
  CHECK(::access(packed.cStr(), F_OK) != 0);
  config.onBadRecord = BadRecordPolicy::SKIP;
  packDataset(config, packed, unheard());
  CHECK(::access(kj::str(packed, "/", MEAN_FILE).cStr(), F_OK) == 0);
}

TEST_CASE("packDataset: messages name the folder of the user, not the temporary one") {
  ImageFolder scratch;
  auto& config = scratch.config;
  config.names.folder = "OUT";
  auto packed = scratch.path("packed");
  struct rlimit before, small;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  small = before;
  small.rlim_cur = 8192;
  ::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  auto message = thrownBy([&]() { packDataset(config, packed, unheard()); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(message.startsWith(kj::str("cannot ")));
  CHECK(tests::contains(message, kj::str(" the record database ", packed, "/training.mdb: ")));
  CHECK(!tests::contains(message, ".part"));
  scratch.write("file", nullptr);
  CHECK(thrownBy([&]() { packDataset(config, scratch.path("file/packed"), unheard()); }) ==
        kj::str("cannot make the folder ", scratch.path("file"),
            ": a file has that name. Rename it, or set OUT to another folder"));
}

TEST_CASE("packDataset: accepts a folder name that ends in a slash") {
  ImageFolder scratch;
  auto& config = scratch.config;
  CHECK(thrownBy([&]() { packDataset(config, scratch.path("packed/."), unheard()); }) ==
        kj::str(scratch.path("packed/."), " cannot be the name of a new folder"));
  CHECK(::access(scratch.path("packed").cStr(), F_OK) != 0);
  packDataset(config, scratch.path("packed/"), unheard());
  CHECK(namesIn(scratch.path("packed")).size() == 3);
}

TEST_CASE("packDataset: resolves `..` in the folder's name as the file system does") {
  ImageFolder scratch;
  auto& config = scratch.config;
  scratch.write("far/below/x", nullptr);
  REQUIRE(::symlink("far/below", scratch.path("link").cStr()) == 0);
  packDataset(config, scratch.path("link/../packed"), unheard());
  CHECK(namesIn(scratch.path("far/packed")).size() == 3);
  // More `..` than there are folders lead to the root.
  auto up = kj::str("..");
  for (uint i = 0; i < 40; ++i) up = kj::str(up, "/..");
  packDataset(config, kj::str(up, scratch.path("other")), unheard());
  CHECK(namesIn(scratch.path("other")).size() == 3);
}

TEST_CASE("packDataset: refuses a second import into the same folder at the same time") {
  ImageFolder scratch;
  auto& config = scratch.config;
  config.names.folder = "OUT";
  auto packed = scratch.path("packed");
  kj::String other;
  bool isFirst = true;
  // The second import begins while the first one is running.
  packDataset(config, packed, [&](kj::StringPtr, uint64_t, uint64_t) {
    if (!isFirst) return;
    isFirst = false;
    other = thrownBy([&]() { packDataset(config, packed, unheard()); });
  });
  CHECK(other == kj::str("another process is writing ", packed,
                     ". Wait until it has ended, or set OUT to another folder"));
  CHECK(namesIn(packed).size() == 3);
}

TEST_CASE("packDataset: removes what a killed process left behind") {
  ImageFolder scratch;
  auto& config = scratch.config;
  auto pid = ::fork();
  if (pid == 0) {
    packDataset(config, scratch.path("packed"),
        [](kj::StringPtr, uint64_t, uint64_t) { ::raise(SIGKILL); });
  }
  int status;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(::access(scratch.path("packed.part/training.mdb").cStr(), F_OK) != 0);
  REQUIRE(namesIn(scratch.path("packed.part")).size() > 1);
  packDataset(config, scratch.path("packed"), unheard());
  CHECK(namesIn(scratch.path("packed")).size() == 3);
  CHECK(::access(scratch.path("packed.part").cStr(), F_OK) != 0);
  // Nobody asked to remove this file.
  scratch.write("other.part", nullptr);
  CHECK(thrownBy([&]() { packDataset(config, scratch.path("other"), unheard()); }) ==
        kj::str("cannot make the folder ", scratch.path("other.part"),
            ": a file has that name. Rename it, or set RUNNER_CACHE to another folder"));
}

TEST_CASE("packDataset: refuses a foreign folder at the place of the unfinished one") {
  ImageFolder scratch;
  auto& config = scratch.config;
  config.names.folder = "OUT";
  auto part = scratch.path("packed.part");
  // Another data set, packed under that name.
  packDataset(config, part, unheard());
  CHECK(thrownBy([&]() {
    packDataset(config, scratch.path("packed"), unheard());
  }).startsWith(kj::str("the folder ", part, " is in the way: it contains ")));
  CHECK(namesIn(part).size() == 3);
  CHECK(::access(scratch.path("packed").cStr(), F_OK) != 0);
}

TEST_CASE("packDataset: a packed folder is a source, and holds the mean image") {
  ImageFolder scratch;
  auto& config = scratch.config;
  auto packed = scratch.path("packed");
  packDataset(config, packed, unheard());
  CHECK(namesIn(packed).size() == 3);
  auto again = testConfig("image_folder", kj::str(packed));
  again.augment.meanImage = true;
  auto dataset = openDataset(again, unheard());
  CHECK(dataset->training().count() == 18);
  CHECK(dataset->training().path().startsWith(packed));
  auto resized = testConfig("image_folder", kj::str(packed));
  resized.resizeShortSide = 7;
  CHECK(thrownBy([&]() { openDataset(resized, unheard()); }) ==
        kj::str("the records in ", packed,
            " were packed with a short side of 16 pixels, not 7. Set data.resize_short_side to "
            "that size, or leave it out"));
  CHECK(dataset->meanImage().size() == 768);
  REQUIRE(::unlink(kj::str(packed, "/", TRAINING_FILE).cStr()) == 0);
  CHECK(thrownBy([&]() { openDataset(again, unheard()); }) ==
        kj::str("the folder of packed records ", packed,
            " has no training.mdb. Write it again with pack_records"));
  CHECK(thrownBy([&]() { packDataset(config, packed, unheard()); }) ==
        kj::str(packed, " exists already. Name a new folder"));
}

TEST_CASE("openDataset: refuses files of labels and names beside packed records") {
  ImageFolder scratch;
  auto packed = scratch.path("packed");
  packDataset(scratch.config, packed, unheard());
  auto config = testConfig("image_folder", kj::str(packed));
  auto refuses = [&](kj::Maybe<kj::String>& file, kj::StringPtr key, kj::StringPtr purpose) {
    file = scratch.path("file.txt");
    CHECK(thrownBy([&]() { openDataset(config, unheard()); }) ==
          kj::str("the records in ", packed, " are packed already, so `", key, "` cannot ", purpose,
              ". Leave data.", key, " out, or set data.source to the original images"));
    file = nullptr;
  };
  refuses(config.labels, "labels", "choose among them or label them");
  refuses(config.validationLabels, "validation_labels", "choose among them or label them");
  refuses(config.classNames, "class_names", "name their classes");
  CHECK(openDataset(config, unheard())->classes() == 2);
}

TEST_CASE("packDataset: the same images give the same bytes") {
  ImageFolder scratch;
  auto& config = scratch.config;
  auto bytesOf = [&](kj::StringPtr folder) {
    auto packed = scratch.path(folder);
    packDataset(config, packed, unheard());
    return kj::str(readFile(kj::str(packed, "/", TRAINING_FILE), 1 << 24).asChars(),
        readFile(kj::str(packed, "/", VALIDATION_FILE), 1 << 24).asChars());
  };
  auto first = bytesOf("one");
  CHECK(bytesOf("two") == first);
  // Also from another folder of the same name.
  scratch.write("elsewhere/x", nullptr);
  REQUIRE(::rename(scratch.path("images").cStr(), scratch.path("elsewhere/images").cStr()) == 0);
  config.source = scratch.path("elsewhere/images");
  CHECK(bytesOf("three") == first);
}

TEST_CASE("openDataset: refuses packed images of different sizes if one short side is asked for") {
  CacheScratch scratch;
  const uint sides[] = {20, 20, 17, 18};
  for (auto i: kj::indices(sides)) {
    scratch.write(kj::str("images/", i % 2, "/", 10 + i, ".jpg"),
        jpegOf(i, {3, sides[i], sides[i] + 10 + uint(i)}));
  }
  auto packed = scratch.path("packed");
  packDataset(testConfig("image_folder", scratch.path("images")), packed, unheard());
  auto config = testConfig("image_folder", kj::str(packed));
  config.augment.crop = 8;
  CHECK(thrownBy([&]() { openDataset(config, unheard()); }) == "");
  // The first record has this side, but the others do not.
  for (uint wanted: {20, 12}) {
    config.resizeShortSide = wanted;
    CHECK(thrownBy([&]() { openDataset(config, unheard()); }) ==
          kj::str("the records in ", packed,
              " were packed without a common short side: they have 17 to 20 pixels, not ", wanted,
              ". Leave data.resize_short_side out, or pack them again with --resize ", wanted));
  }

  // Packed with one short side, in different shapes.
  auto resized = testConfig("image_folder", scratch.path("images"));
  resized.resizeShortSide = 12;
  packDataset(resized, scratch.path("resized"), unheard());
  config = testConfig("image_folder", scratch.path("resized"));
  config.augment.crop = 8;
  config.resizeShortSide = 12;
  CHECK(thrownBy([&]() { openDataset(config, unheard()); }) == "");
  config.resizeShortSide = 13;
  CHECK(thrownBy([&]() { openDataset(config, unheard()); }) ==
        kj::str("the records in ", scratch.path("resized"),
            " were packed with a short side of 12 pixels, not 13. Set data.resize_short_side to "
            "that size, or leave it out"));
}

TEST_CASE("openDataset: refuses packed records of another data set of the same shape") {
  auto datasets = sharedDatasets("mnist/train-images-idx3-ubyte.gz");
  if (datasets == nullptr) SKIP_CASE("RUNNER_DATASETS has no mnist");
  Scratch scratch;
  auto packed = scratch.path("packed");
  packDataset(testConfig("mnist"), packed, unheard());
  CHECK(openDataset(testConfig("mnist", kj::str(packed)), unheard())->classes() == 10);
  CHECK(thrownBy([&]() { openDataset(testConfig("fashion_mnist", kj::str(packed)), unheard()); }) ==
        kj::str("the records in ", packed, " are those of the data set mnist, not fashion_mnist. ",
            "Set data.dataset to \"mnist\", or data.source to other records"));
  // An image_folder may have any images.
  CHECK(openDataset(testConfig("image_folder", kj::str(packed)), unheard())->classes() == 10);
}

TEST_CASE("openDataset: judges packed records without a data set's name by counts and shape") {
  Scratch scratch;
  auto packed = kj::str(scratch.path("packed"));
  scratch.write("packed/x", nullptr);
  auto bytes = kj::heapArray<kj::byte>(784);
  memset(bytes.begin(), 1, bytes.size());
  auto write = [&](kj::StringPtr name, uint64_t count) {
    auto writer = RecordWriter::create(kj::str(packed, "/", name));
    for (uint64_t i = 0; i < count; ++i) writer->add(i % 10, i, Encoding::RAW, {1, 28, 28}, bytes);
    writer->finish();
  };
  auto open = [&]() { openDataset(testConfig("mnist", kj::str(packed)), unheard()); };
  write(TRAINING_FILE, 60000);
  write(VALIDATION_FILE, 9999);
  CHECK(thrownBy(open) ==
        kj::str("the records in ", packed, " are not those of the data set mnist: 60000 + 9999 ",
            "images of 1×28×28 in 10 classes. Set data.dataset or data.resize_short_side to what ",
            "was packed"));
  write(VALIDATION_FILE, 10000);
  CHECK(thrownBy(open) == "");
}

}  // namespace io
