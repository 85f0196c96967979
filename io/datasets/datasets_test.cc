#include "io/datasets/datasets.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "io/datasets/import.h"
#include "io/testing/image_folder.h"
#include "io/testing/scratch.h"
#include "tests/text.h"

namespace io {

TEST_CASE("openDataset: names a file that is in the way of the cache or of a folder in it") {
  CacheScratch scratch;
  auto config = testConfig("image_folder", scratch.path("images"));
  scratch.write("images/cat/1.jpg", jpegOf(1));
  auto cache = scratch.write("cache", nullptr);
  CHECK(thrownBy([&]() { openDataset(config, unheard()); }) ==
        kj::str("cannot make the folder ", cache,
            ": a file has that name. Rename it, or set RUNNER_CACHE to another folder"));
  KJ_SYSCALL(::unlink(cache.cStr()));
}

TEST_CASE("openDataset: imports again if a file of the cached folder was deleted") {
  ImageFolder scratch;
  auto& config = scratch.config;
  config.augment.meanImage = true;
  kj::String damaged;
  for (auto file: {TRAINING_FILE, VALIDATION_FILE}) {
    {
      auto dataset = openDataset(config, unheard());
      auto& db = file == TRAINING_FILE ? dataset->training() : dataset->validation();
      damaged = kj::str(db.path());
      REQUIRE(::truncate(damaged.cStr(), 4096) == 0);
    }
    // The advice in the message works.
    auto message = thrownBy([&]() { openDataset(config, unheard()); });
    CHECK(message.startsWith(kj::str("cannot open the record database ", damaged, ": ")));
    CHECK(memmem(message.begin(), message.size(), ". Delete this file", 18) != nullptr);
    REQUIRE(::unlink(damaged.cStr()) == 0);
    auto dataset = openDataset(config, unheard());
    CHECK(dataset->training().count() == 18);
    CHECK(dataset->validation().count() == 2);
    CHECK(dataset->meanImage().size() == 768);
  }
  // `<data set>-<encoding>-<16 digits>`, and the lock beside it.
  auto names = namesIn(scratch.path("cache"));
  CHECK(names.size() == 2);
  for (auto& name: names) {
    if (!name.endsWith(".lock")) CHECK(name.size() == strlen("image_folder-jpeg-") + 16);
  }
}

TEST_CASE("openDataset: refuses images that all lie in one folder, because they have no classes") {
  CacheScratch scratch;
  scratch.write("flat/1.jpg", jpegOf(1));
  scratch.write("flat/2.jpg", jpegOf(2));
  auto source = scratch.path("flat");
  CHECK(thrownBy([&]() {
    openDataset(testConfig("image_folder", kj::str(source)), unheard());
  }).startsWith(kj::str("all images of ", source, " are in one folder, ")));
}

TEST_CASE(
    "openDataset: sub-folders of images are classes, and every tenth image is for validation") {
  ImageFolder scratch;
  auto& config = scratch.config;
  config.augment.meanImage = true;
  auto dataset = openDataset(config, unheard());
  CHECK(dataset->classes() == 2);
  CHECK(dataset->training().count() == 18);
  CHECK(dataset->validation().count() == 2);
  CHECK(KJ_ASSERT_NONNULL(dataset->storedShape()) == ImageShape{3, 16, 16});
  auto reader = RecordReader::open(dataset->validation());
  CHECK(reader->read(0).id == 9);
  CHECK(reader->read(0).label == 0);
  CHECK(reader->read(1).id == 19);
  CHECK(reader->read(1).label == 1);
  // Levels 0, 10 … 190 without those of images 9 and 19. JPEG keeps flat images within 1.
  CHECK(dataset->meanImage()[0] == doctest::Approx((1900.0 - 90 - 190) / 18).epsilon(0.02));

  config.encoding = Encoding::RAW;
  config.resizeShortSide = 8;
  auto resized = openDataset(config, unheard());
  CHECK(KJ_ASSERT_NONNULL(resized->storedShape()) == ImageShape{3, 8, 8});
  CHECK(RecordReader::open(resized->training())->read(3).encoding == Encoding::RAW);
}

TEST_CASE("recordsSha256: the same images have the same sum wherever they are, packed or not") {
  ImageFolder scratch;
  auto& config = scratch.config;
  CHECK(!areRecordsKnown(config));
  auto sum = recordsSha256(config);
  CHECK(sum.size() == 64);

  auto moved = scratch.path("moved");
  KJ_SYSCALL(::rename(scratch.path("images").cStr(), moved.cStr()));
  config.source = kj::str(moved);
  CHECK(recordsSha256(config) == sum);

  packDataset(config, scratch.path("packed"), unheard());
  config.source = scratch.path("packed");
  CHECK(!areRecordsKnown(config));
  CHECK(recordsSha256(config) == sum);

  scratch.write("moved/cat/105.jpg", jpegOf(251));
  config.source = kj::mv(moved);
  CHECK(recordsSha256(config) != sum);

  CHECK(areRecordsKnown(testConfig("mnist")));
}

TEST_CASE("recordsSha256: depends on the names in a file of class names, not on its path") {
  ImageFolder scratch;
  auto& config = scratch.config;
  auto sumWith = [&](kj::StringPtr place, kj::StringPtr names) {
    config.classNames = scratch.write(place, names.asBytes());
    return recordsSha256(config);
  };
  auto sum = sumWith("names.txt", "tiger cat\npug\n");
  CHECK(sumWith("moved.txt", "tiger cat\npug\n") == sum);
  CHECK(sumWith("names.txt", "lion\npug\n") != sum);
}

TEST_CASE("openDataset: lists of labels with equal sizes and times give different imports") {
  ImageFolder scratch;
  auto& config = scratch.config;
  auto labelsWith = [&](kj::StringPtr name, kj::StringPtr cat, kj::StringPtr dog) {
    kj::Vector<kj::String> lines;
    for (uint i = 0; i < 20; i++) {
      lines.add(i < 12 ? kj::str("cat/", 100 + i, ".jpg\t", cat, "\n")
                       : kj::str("dog/", 100 + i, ".jpg\t", dog, "\n"));
    }
    auto path = scratch.write(name, kj::strArray(lines, "").asBytes());
    const timespec times[2] = {{1, 0}, {1, 0}};
    KJ_SYSCALL(::utimensat(AT_FDCWD, path.cStr(), times, 0));
    config.labels = kj::mv(path);
    auto dataset = openDataset(config, unheard());
    return RecordReader::open(dataset->training())->read(0).label;
  };
  CHECK(labelsWith("one.tsv", "0", "1") == 0);
  CHECK(labelsWith("two.tsv", "1", "0") == 1);
}

TEST_CASE("openDataset: imports a changed image folder again") {
  ImageFolder scratch;
  auto& config = scratch.config;
  CHECK(openDataset(config, unheard())->classes() == 2);
  scratch.write("images/eel/1.jpg", jpegOf(7));
  CHECK(openDataset(config, unheard())->classes() == 3);
}

TEST_CASE("openDataset: imports an image folder again if other files are left out") {
  ImageFolder scratch;
  auto& config = scratch.config;
  auto opened = [&]() {
    auto dataset = openDataset(config, unheard(), [](kj::StringPtr) {});
    return kj::str(dataset->training().count() + dataset->validation().count(), "; ",
        kj::strArray(dataset->leftOut(), "; "));
  };
  CHECK(opened() == "20; ");
  scratch.write("far/1.jpg", jpegOf(7));
  REQUIRE(::symlink("../../far/1.jpg", scratch.path("images/cat/far.jpg").cStr()) == 0);
  CHECK(opened() == "21; ");
  REQUIRE(::rename(scratch.path("far").cStr(), scratch.path("gone").cStr()) == 0);
  auto begin = kj::str("20; left out 1 entry of ", scratch.path("images"),
      " that is not a regular file: cat/far.jpg ");
  CHECK(opened() == kj::str(begin, "(a link to nothing)"));
  REQUIRE(::unlink(scratch.path("images/cat/far.jpg").cStr()) == 0);
  REQUIRE(::mkfifo(scratch.path("images/cat/far.jpg").cStr(), 0666) == 0);
  CHECK(opened() == kj::str(begin, "(a pipe)"));
}

TEST_CASE("openDataset: imports an image that was left out once it may be read") {
  ImageFolder scratch;
  auto& config = scratch.config;
  config.onBadRecord = BadRecordPolicy::SKIP;
  auto path = scratch.path("images/cat/103.jpg");
  AsOrdinaryUser user;
  auto images = [&]() {
    auto dataset = openDataset(config, unheard(), [](kj::StringPtr) {});
    return dataset->training().count() + dataset->validation().count();
  };
  KJ_SYSCALL(::chmod(path.cStr(), 0));
  CHECK(images() == 19);
  KJ_SYSCALL(::chmod(path.cStr(), 0644));
  CHECK(images() == 20);
}

TEST_CASE("openDataset: imports an image folder once, although the cache and runs are in it") {
  ImageFolder scratch;
  REQUIRE(::setenv("RUNNER_CACHE", scratch.path("images/cache").cStr(), 1) == 0);
  uint imports = 0;
  auto opened = [&]() {
    Progress count = [&](kj::StringPtr what, uint64_t done, uint64_t total) {
      imports += what == "importing, images" && done == total;
    };
    return openDataset(scratch.config, kj::mv(count), [](kj::StringPtr) {})->training().count();
  };
  CHECK(opened() == 18);
  scratch.write("images/runs/x/1/events.jsonl", nullptr);
  scratch.write("images/runs/x/1/.lock", nullptr);
  CHECK(opened() == 18);
  CHECK(imports == 1);
}

TEST_CASE("openDataset: keeps the list of left-out files beside the imported records") {
  ImageFolder scratch;
  auto& config = scratch.config;
  CHECK(openDataset(config, unheard())->leftOut().size() == 0);
  scratch.write("images/x.gif", nullptr);
  config.onBadRecord = BadRecordPolicy::SKIP;
  for (uint i = 0; i < 7; ++i) scratch.write(kj::str("images/cat/bad-", i, ".jpg"), nullptr);
  kj::Vector<kj::String> told;
  Warn warn = [&](kj::StringPtr sentence) { told.add(kj::str(sentence)); };
  auto check = [&](const Dataset& dataset) {
    auto leftOut = dataset.leftOut();
    REQUIRE(leftOut.size() == 6);
    for (uint i = 0; i < 5; ++i) CHECK(leftOut[i] == told[i]);
    CHECK(leftOut[5].startsWith("4 more warnings about what the import left out: see "));
    CHECK(leftOut[5].endsWith("/left_out.txt"));
  };
  check(*openDataset(config, unheard(), kj::mv(warn)));
  // One per bad image, one on their number, one on the other file.
  CHECK(told.size() == 9);
  check(*openDataset(config, unheard()));
  packDataset(config, scratch.path("packed"), unheard(), [](kj::StringPtr) {});
  config.source = scratch.path("packed");
  check(*openDataset(config, unheard()));
}

TEST_CASE("openDataset: does not shorten six sentences on what an import left out") {
  ImageFolder scratch;
  auto& config = scratch.config;
  config.onBadRecord = BadRecordPolicy::SKIP;
  // One sentence per bad image, and one on their number.
  for (uint i = 0; i < 5; ++i) scratch.write(kj::str("images/cat/bad-", i, ".jpg"), nullptr);
  kj::Vector<kj::String> told;
  auto dataset =
      openDataset(config, unheard(), [&](kj::StringPtr sentence) { told.add(kj::str(sentence)); });
  CHECK(told.size() == 6);
  CHECK(kj::strArray(dataset->leftOut(), "\n") == kj::strArray(told, "\n"));
}

TEST_CASE("openDataset: names a source that is a pipe, and does not wait for it") {
  CacheScratch scratch;
  auto pipe = scratch.path("photos.tar");
  REQUIRE(::mkfifo(pipe.cStr(), 0600) == 0);
  CHECK(thrownBy([&]() {
    openDataset(testConfig("image_folder", kj::str(pipe)), unheard());
  }).startsWith(kj::str(pipe, " (a pipe) is not a folder or an archive. Set ")));
  auto message = thrownBy([&]() { openDataset(testConfig("mnist", kj::str(pipe)), unheard()); });
  INFO(message.cStr());
  CHECK(strstr(message.cStr(), " (a pipe) is not a folder or an archive") != nullptr);
}

TEST_CASE("openDataset: the next import removes what a killed import left in the cache") {
  ImageFolder scratch;
  auto& config = scratch.config;
  auto pid = ::fork();
  if (pid == 0) {
    openDataset(config, [](kj::StringPtr, uint64_t, uint64_t) { ::raise(SIGKILL); });
  }
  int status;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  auto unfinished = [&]() {
    uint count = 0;
    for (auto& name: namesIn(scratch.path("cache"))) count += name.endsWith(".part");
    return count;
  };
  REQUIRE(unfinished() == 1);
  // Other images have another place in the cache.
  scratch.write("images/cat/999.jpg", jpegOf(1));
  uint atWork = 0;
  auto check = [&](kj::StringPtr, uint64_t, uint64_t) {
    // One import does not touch what another one is writing.
    if (atWork++ > 0) return;
    CHECK(unfinished() == 1);
    scratch.write("images/cat/998.jpg", jpegOf(1));
    openDataset(config, unheard());
    CHECK(unfinished() == 1);
  };
  // The import reports progress while it lists the images, before it has read any.
  kj::runCatchingExceptions([&]() { openDataset(config, check); });
  CHECK(atWork > 0);
  // The folder of the one import that was complete, and its lock.
  CHECK(namesIn(scratch.path("cache")).size() == 2);
  CHECK(unfinished() == 0);
}

TEST_CASE("openDataset: messages name the source of images, not their folder in the cache") {
  ImageFolder scratch;
  auto& config = scratch.config;
  config.augment.crop = 17;
  CHECK(thrownBy([&]() { openDataset(config, unheard()); }) ==
        kj::str("data.augment.crop = 17 is larger than the images of ", scratch.path("images"),
            ", which have 16×16 pixels. Set a smaller crop"));
  config.augment.crop = 0;
  config.augment.cutout = 16;
  CHECK(thrownBy([&]() { openDataset(config, unheard()); }) ==
        "data.augment.cutout = 16 must be smaller than the images of a batch, which have 16×16 "
        "pixels. Choose a smaller square");
}

TEST_CASE(
    "openDataset: images of different sizes need a crop, and the message names their source") {
  CacheScratch scratch;
  scratch.write("images/cat/1.jpg", jpegOf(1));
  scratch.write("images/dog/2.jpg", jpegOf(1, {3, 16, 20}));
  auto source = scratch.path("images");
  CHECK(thrownBy([&]() { openDataset(testConfig("image_folder", kj::str(source)), unheard()); }) ==
        kj::str("images in ", source, " have different sizes. Set data.augment.crop"));
}

TEST_CASE(
    "openDataset: of processes that start at the same moment, one imports and all read the same "
    "records") {
  ImageFolder scratch;
  auto& config = scratch.config;
  // Each process waits at the gate until all have arrived, imports, and reports whether it did the
  // work.
  constexpr uint PROCESSES = 4;
  int gate[2], results[2];
  KJ_SYSCALL(::pipe(gate));
  KJ_SYSCALL(::pipe(results));
  pid_t children[PROCESSES];
  for (auto& child: children) {
    KJ_SYSCALL(child = ::fork());
    if (child != 0) continue;
    ::close(gate[1]);
    kj::byte go;
    KJ_SYSCALL(::read(gate[0], &go, 1));
    char imported = 'n';
    auto problem = kj::runCatchingExceptions([&]() {
      auto dataset = openDataset(config, [&](kj::StringPtr what, uint64_t, uint64_t) {
        if (what == "importing, images") imported = 'y';
      });
      KJ_ASSERT(dataset->training().count() == 18);
    });
    if (problem != nullptr) imported = 'x';
    KJ_SYSCALL(::write(results[1], &imported, 1));
    ::_exit(0);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  ::close(results[1]);
  uint imports = 0;
  for (uint i = 0; i < PROCESSES; ++i) {
    char imported = 'x';
    KJ_SYSCALL(::read(results[0], &imported, 1));
    CHECK(imported != 'x');
    imports += imported == 'y';
  }
  CHECK(imports == 1);
  ::close(results[0]);
  for (auto child: children) {
    int status = 0;
    KJ_SYSCALL(::waitpid(child, &status, 0));
    CHECK(status == 0);
  }
}

}  // namespace io
