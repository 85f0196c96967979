// Tests the mean image that is kept beside the records of a data set.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/filesystem.h>
#include <kj/vector.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "io/datasets/datasets.h"
#include "io/datasets/import.h"
#include "io/images/mean_file.h"
#include "io/testing/image_folder.h"
#include "io/testing/scratch.h"

namespace io {

TEST_CASE("openDataset: refuses by name a mean image that is damaged or of other records") {
  ImageFolder scratch;
  auto& config = scratch.config;
  auto packed = scratch.path("packed");
  packDataset(config, packed, unheard());
  auto read = [&]() {
    auto again = testConfig("image_folder", kj::str(packed));
    again.augment.meanImage = true;
    return kj::heapArray<float>(openDataset(again, unheard())->meanImage());
  };
  auto path = kj::str(packed, "/", MEAN_FILE);
  auto contentOfFile = [&]() {
    auto filesystem = kj::newDiskFilesystem();
    return filesystem->getRoot().openFile(kj::Path(nullptr).evalNative(path))->readAllBytes();
  };
  auto good = read();
  auto bytes = contentOfFile();
  REQUIRE(bytes.size() == 768 * 4 + 32);
  CHECK(memcmp(bytes.begin(), good.begin(), 768 * 4) == 0);

  auto checkRefused = [&](kj::ArrayPtr<const kj::byte> content, kj::StringPtr cause) {
    scratch.write(kj::str("packed/", MEAN_FILE), content);
    CHECK(thrownBy([&]() { read(); }) == kj::str("cannot use the mean image ", path, ": ", cause,
                                             ". Delete it, and the next run computes it again"));
    REQUIRE(::unlink(path.cStr()) == 0);
    CHECK(read() == good);
    CHECK(contentOfFile() == bytes);
  };
  constexpr kj::StringPtr WRONG =
      "its checksum is wrong, so it is damaged or belongs to other records"_kj;
  auto flipped = kj::heapArray<kj::byte>(bytes);
  flipped[1000] ^= 1;
  checkRefused(flipped, WRONG);
  auto zeros = kj::heapArray<kj::byte>(bytes.size());
  memset(zeros.begin(), 0, zeros.size());
  checkRefused(zeros, WRONG);
  checkRefused(bytes.slice(0, 1000), "it has 1000 bytes, not 3104");
  REQUIRE(::unlink(path.cStr()) == 0);
  REQUIRE(::mkdir(path.cStr(), 0777) == 0);
  CHECK(thrownBy([&]() { read(); }) ==
        kj::str("cannot use the mean image ", path,
            ": it is a folder. Delete it, and the next run computes it again"));
  REQUIRE(::rmdir(path.cStr()) == 0);
  // An older program wrote only the numbers. Nothing proves that they are correct.
  scratch.write(kj::str("packed/", MEAN_FILE), zeros.slice(0, 768 * 4));
  CHECK(read() == good);
  CHECK(contentOfFile() == bytes);

  // The records of another folder.
  scratch.write("images/dog/113.jpg", jpegOf(250));
  auto other = scratch.path("other");
  packDataset(testConfig("image_folder", scratch.path("images")), other, unheard());
  REQUIRE(::rename(kj::str(other, "/", TRAINING_FILE).cStr(),
              kj::str(packed, "/", TRAINING_FILE).cStr()) == 0);
  CHECK(thrownBy([&]() { read(); }).size() > 0);
}

TEST_CASE("openDataset: warns if the mean image cannot be written, and uses it") {
  ImageFolder scratch;
  auto packed = scratch.path("packed");
  packDataset(scratch.config, packed, unheard());
  auto path = kj::str(packed, "/", MEAN_FILE);
  REQUIRE(::unlink(path.cStr()) == 0);
  auto config = testConfig("image_folder", kj::str(packed));
  config.augment.meanImage = true;
  kj::Vector<kj::String> told;
  Warn warn = [&](kj::StringPtr sentence) { told.add(kj::str(sentence)); };
  struct rlimit before, small;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  small = before;
  small.rlim_cur = 1024;
  ::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  auto size = openDataset(config, unheard(), kj::mv(warn))->meanImage().size();
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(size == 768);
  REQUIRE(told.size() == 1);
  CHECK(told[0] ==
        kj::str("the mean image was not stored: ", path, " cannot be written: File too large"));
  CHECK(namesIn(packed).size() == 2);
  // In a read-only folder nobody expects a mean image to be kept.
  AsOrdinaryUser user;
  REQUIRE(::chmod(packed.cStr(), 0555) == 0);
  told.clear();
  Warn again = [&](kj::StringPtr sentence) { told.add(kj::str(sentence)); };
  CHECK(openDataset(config, unheard(), kj::mv(again))->meanImage().size() == 768);
  CHECK(told.size() == 0);
  REQUIRE(::chmod(packed.cStr(), 0755) == 0);
}

}  // namespace io
