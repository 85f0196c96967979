#include "io/datasets/datasets.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/filesystem.h>
#include <kj/vector.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "io/checksum.h"
#include "io/datasets/import.h"
#include "io/images/jpeg.h"
#include "io/images/mean_file.h"
#include "io/testing/scratch.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace io {

namespace {

Progress silent() {
  return [](kj::StringPtr, uint64_t, uint64_t) {};
}

void useCache(const Scratch& scratch) {
  KJ_ASSERT(::setenv("RUNNER_CACHE", scratch.path("cache").cStr(), 1) == 0);
}

kj::Array<kj::String> namesIn(kj::StringPtr folder) {
  auto filesystem = kj::newDiskFilesystem();
  auto opened = filesystem->getRoot().openSubdir(kj::Path(nullptr).evalNative(folder));
  return KJ_MAP(name, opened->listNames()) {
    return kj::str(name);
  };
}

// A JPEG file of one grey level.
kj::Array<kj::byte> jpegOf(kj::byte level, ImageShape shape) {
  auto planes = kj::heapArray<kj::byte>(shape.size());
  memset(planes.begin(), level, planes.size());
  return encodeJpeg({shape, Layout::PLANES, planes});
}

// Twelve images of class "cat", eight of class "dog".
kj::String writeClasses(const Scratch& scratch) {
  for (uint i = 0; i < 20; ++i) {
    scratch.write(kj::str("images/", i < 12 ? "cat" : "dog", "/", 100 + i, ".jpg"),
        jpegOf(i * 10, {3, 16, 16}));
  }
  return scratch.path("images");
}

struct Counted {
  uint64_t images = 0;
  uint64_t labels[10] = {};
  uint64_t sum = 0;  // of all pixels of the first channel

  void add(const RecordDb& db) {
    auto reader = RecordReader::open(db);
    for (uint64_t i = 0; i < db.count(); ++i) {
      auto record = reader->read(i);
      KJ_ASSERT(record.label < 10 && record.encoding == Encoding::RAW);
      ++images;
      ++labels[record.label];
      size_t plane = size_t(record.shape.height) * record.shape.width;
      for (auto pixel: record.bytes.slice(0, plane)) sum += pixel;
    }
  }
};

}  // namespace

TEST_CASE("openDataset: MNIST has its images, labels and mean") {
  auto datasets = sharedDatasets("mnist/train-images-idx3-ubyte.gz");
  if (datasets == nullptr) SKIP_CASE("RUNNER_DATASETS has no mnist");
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("mnist");
  config.augment.meanImage = true;
  auto dataset = openDataset(config, silent());
  CHECK(dataset->classes() == 10);
  CHECK(KJ_ASSERT_NONNULL(dataset->storedShape()) == ImageShape{1, 28, 28});
  CHECK(dataset->batchShape() == ImageShape{1, 28, 28});
  Counted training;
  training.add(dataset->training());
  CHECK(training.images == 60000);
  const uint64_t labels[] = {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949};
  CHECK(memcmp(training.labels, labels, sizeof(labels)) == 0);
  // The published mean of all training pixels is 0.1307 of 255.
  CHECK(double(training.sum) / (60000.0 * 784) == doctest::Approx(0.1307 * 255).epsilon(0.001));
  double sum = 0;
  for (float pixel: dataset->meanImage()) sum += pixel;
  CHECK(sum / 784 == doctest::Approx(double(training.sum) / (60000.0 * 784)));
  Counted validation;
  validation.add(dataset->validation());
  CHECK(validation.images == 10000);
  CHECK(validation.labels[1] == 1135);
}

TEST_CASE("openDataset: Fashion-MNIST is read from Debian's package, and its cache from then on") {
  if (::access("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz", R_OK) != 0) {
    SKIP_CASE("dataset-fashion-mnist is not installed");
  }
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("fashion_mnist");
  uint reports = 0;
  auto progress = [&](kj::StringPtr, uint64_t, uint64_t) { ++reports; };
  auto first = openDataset(config, progress);
  CHECK(first->training().count() == 60000);
  CHECK(first->validation().count() == 10000);
  CHECK(reports > 60);
  reports = 0;
  auto second = openDataset(config, progress);
  CHECK(reports == 0);
  auto mistyped = testConfig("fashion_mnist", scratch.path("nothing"));
  CHECK(thrownBy([&]() {
    openDataset(mistyped, silent());
  }).startsWith("cannot find the data set fashion_mnist: "));
  CHECK(second->training().digest() == first->training().digest());
}

TEST_CASE("openDataset: CIFAR-10 is read from an archive of any kind, with the published means") {
  auto datasets = sharedDatasets("cifar10");
  if (datasets == nullptr) SKIP_CASE("RUNNER_DATASETS has no cifar10");
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("cifar10");
  config.augment.meanImage = true;
  config.augment.crop = 28;
  auto dataset = openDataset(config, silent());
  CHECK(dataset->batchShape() == ImageShape{3, 28, 28});
  Counted training;
  training.add(dataset->training());
  CHECK(training.images == 50000);
  for (auto count: training.labels) CHECK(count == 5000);
  CHECK(double(training.sum) / (50000.0 * 1024) == doctest::Approx(125.307).epsilon(1e-5));
  double means[3] = {};
  auto mean = dataset->meanImage();
  for (auto i: kj::indices(mean)) means[i / 1024] += mean[i] / 1024;
  CHECK(means[0] == doctest::Approx(125.307).epsilon(1e-5));
  CHECK(means[1] == doctest::Approx(122.950).epsilon(1e-5));
  CHECK(means[2] == doctest::Approx(113.865).epsilon(1e-5));
  Counted validation;
  validation.add(dataset->validation());
  for (auto count: validation.labels) CHECK(count == 1000);
}

TEST_CASE("openDataset: the ImageNet sample keeps its JPEG files and labels with gaps") {
  auto datasets = sharedDatasets("imagenet-sample/labels.tsv");
  if (datasets == nullptr) SKIP_CASE("RUNNER_DATASETS has no imagenet-sample");
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder");
  CHECK(thrownBy([&]() { openDataset(config, silent()); }).endsWith("set data.augment.crop"));
  config.augment.crop = 56;
  auto dataset = openDataset(config, silent());
  CHECK(dataset->training().count() == 536);
  CHECK(dataset->validation().count() == 59);
  CHECK(dataset->classes() == 997);
  CHECK(dataset->storedShape() == nullptr);
  CHECK(dataset->batchShape() == ImageShape{3, 56, 56});
  auto reader = RecordReader::open(dataset->training());
  auto record = reader->read(0);
  CHECK(record.encoding == Encoding::JPEG);
  CHECK(record.shape == ImageShape{3, 375, 500});
  CHECK(record.label == 0);
  JpegDecoder decoder;
  for (uint64_t i = 0; i < 536; ++i) {
    auto image = reader->read(i);
    CHECK(decoder.decode(image.bytes, image.shape).size() == image.shape.size());
  }
}

TEST_CASE("openDataset: a source is looked for as a folder, the folder above, and a mirror") {
  auto datasets = sharedDatasets("mnist/train-images-idx3-ubyte.gz");
  if (datasets == nullptr) SKIP_CASE("RUNNER_DATASETS has no mnist");
  auto folder = kj::str(KJ_ASSERT_NONNULL(datasets));
  kj::Vector<kj::String> digests;
  for (auto& source: kj::arr(kj::str(folder), kj::str(folder, "/mnist"), kj::str("file://", folder),
           kj::str("file://", folder, "/mnist/"))) {
    Scratch scratch;
    useCache(scratch);
    auto dataset = openDataset(testConfig("mnist", kj::str(source)), silent());
    digests.add(sha256Hex(dataset->training().digest()));
    // Downloads do not stay in the cache.
    for (auto& name: namesIn(scratch.path("cache"))) {
      if (!name.endsWith(".lock"))
        CHECK(namesIn(scratch.path(kj::str("cache/", name))).size() == 2);
    }
  }
  for (auto& digest: digests) CHECK(digest == digests[0]);
}

TEST_CASE("openDataset: a source without the files, or with damaged ones, is refused by name") {
  Scratch scratch;
  useCache(scratch);
  auto empty = scratch.path("nothing");
  CHECK(thrownBy([&]() { openDataset(testConfig("mnist", kj::str(empty)), silent()); }) ==
        kj::str("cannot find the data set mnist: ", empty,
            " is not there; set data.source to a folder that holds train-images-idx3-ubyte.gz, "
            "train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz, or "
            "leave it out"));
  for (auto name: {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
           "t10k-labels-idx1-ubyte"}) {
    scratch.write(kj::str("short/", name), kj::StringPtr("x").asBytes());
  }
  auto source = scratch.path("short");
  CHECK(thrownBy([&]() { openDataset(testConfig("cifar10", kj::str(source)), silent()); }) ==
        kj::str("cannot find the data set cifar10: ", source,
            " has no data_batch_1.bin; set data.source to a folder that holds "
            "cifar-10-binary.tar.gz, or leave it out"));
  CHECK(thrownBy([&]() { openDataset(testConfig("mnist", kj::str(source)), silent()); }) ==
        kj::str("train-images-idx3-ubyte from ", source,
            "/train-images-idx3-ubyte is damaged: unpacked it has 1 bytes, not 47040016; get it "
            "again, or set data.source to another place"));
  // Nothing unfinished is left in the cache.
  for (auto& name: namesIn(scratch.path("cache"))) CHECK(name.endsWith(".lock"));
}

TEST_CASE("openDataset: files of another size or content than published are never believed") {
  Scratch scratch;
  useCache(scratch);
  // As long as it should be, with a count in its header that the file does not hold.
  auto idx = kj::heapArray<kj::byte>(47040016);
  memset(idx.begin(), 0, idx.size());
  const kj::byte header[] = {0, 0, 8, 3, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 28, 0, 0, 0, 28};
  memcpy(idx.begin(), header, sizeof(header));
  scratch.write("idx/train-images-idx3-ubyte", idx);
  for (auto name: {"train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    scratch.write(kj::str("idx/", name), nullptr);
  }
  auto refusal = [&](kj::StringPtr name, kj::StringPtr folder) {
    return thrownBy([&]() { openDataset(testConfig(name, scratch.path(folder)), silent()); });
  };
  CHECK(refusal("mnist", "idx")
            .startsWith(kj::str("train-images-idx3-ubyte from ", scratch.path("idx"),
                "/train-images-idx3-ubyte is damaged: the sha256 of its content is ")));

  // One pixel too short.
  auto cifar = idx.slice(0, 30730000 - 1);
  scratch.write("cifar/data_batch_1.bin", cifar);
  for (auto name: {"data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
           "test_batch.bin"}) {
    scratch.write(kj::str("cifar/", name), nullptr);
  }
  CHECK(refusal("cifar10", "cifar") ==
        kj::str("data_batch_1.bin from ", scratch.path("cifar"),
            "/data_batch_1.bin is damaged: unpacked it has 30729999 bytes, not 30730000; get it "
            "again, or set data.source to another place"));
}

TEST_CASE("openDataset: a cached folder of which a file was deleted is imported again") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  config.augment.meanImage = true;
  kj::String damaged;
  for (auto file: {TRAINING_FILE, VALIDATION_FILE}) {
    {
      auto dataset = openDataset(config, silent());
      auto& db = file == TRAINING_FILE ? dataset->training() : dataset->validation();
      damaged = kj::str(db.path());
      REQUIRE(::truncate(damaged.cStr(), 4096) == 0);
    }
    // What the message says is what helps.
    auto message = thrownBy([&]() { openDataset(config, silent()); });
    CHECK(message.startsWith(kj::str("cannot open the record database ", damaged, ": ")));
    CHECK(memmem(message.begin(), message.size(), "; delete this file", 18) != nullptr);
    REQUIRE(::unlink(damaged.cStr()) == 0);
    auto dataset = openDataset(config, silent());
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

TEST_CASE("openDataset: images in one folder alone are no classes") {
  Scratch scratch;
  useCache(scratch);
  scratch.write("flat/1.jpg", jpegOf(1, {3, 16, 16}));
  scratch.write("flat/2.jpg", jpegOf(2, {3, 16, 16}));
  auto source = scratch.path("flat");
  CHECK(thrownBy([&]() {
    openDataset(testConfig("image_folder", kj::str(source)), silent());
  }).startsWith(kj::str("all images of ", source, " lie in one folder, ")));
}

TEST_CASE("openDataset: sub-folders of images are classes, every tenth image is for validation") {
  Scratch scratch;
  useCache(scratch);
  auto source = writeClasses(scratch);
  auto config = testConfig("image_folder", kj::str(source));
  config.augment.meanImage = true;
  auto dataset = openDataset(config, silent());
  CHECK(dataset->classes() == 2);
  CHECK(dataset->training().count() == 18);
  CHECK(dataset->validation().count() == 2);
  CHECK(KJ_ASSERT_NONNULL(dataset->storedShape()) == ImageShape{3, 16, 16});
  auto reader = RecordReader::open(dataset->validation());
  CHECK(reader->read(0).id == 9);
  CHECK(reader->read(0).label == 0);
  CHECK(reader->read(1).id == 19);
  CHECK(reader->read(1).label == 1);
  // Levels 0, 10 … 190 without those of images 9 and 19; JPEG keeps flat images within 1.
  CHECK(dataset->meanImage()[0] == doctest::Approx((1900.0 - 90 - 190) / 18).epsilon(0.02));

  config.encoding = Encoding::RAW;
  config.resizeShortSide = 8;
  auto resized = openDataset(config, silent());
  CHECK(KJ_ASSERT_NONNULL(resized->storedShape()) == ImageShape{3, 8, 8});
  CHECK(RecordReader::open(resized->training())->read(3).encoding == Encoding::RAW);
}

TEST_CASE("recordsSha256: the same images anywhere, packed or not, have the same sum, others not") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder");
  config.source = writeClasses(scratch);
  CHECK(!areRecordsKnown(config));
  auto sum = recordsSha256(config);
  CHECK(sum.size() == 64);

  auto moved = scratch.path("moved");
  KJ_SYSCALL(::rename(scratch.path("images").cStr(), moved.cStr()));
  config.source = kj::str(moved);
  CHECK(recordsSha256(config) == sum);

  packDataset(config, scratch.path("packed"), silent());
  config.source = scratch.path("packed");
  CHECK(!areRecordsKnown(config));
  CHECK(recordsSha256(config) == sum);

  scratch.write("moved/cat/105.jpg", jpegOf(251, {3, 16, 16}));
  config.source = kj::mv(moved);
  CHECK(recordsSha256(config) != sum);

  CHECK(areRecordsKnown(testConfig("mnist")));
}

TEST_CASE("openDataset: a changed image folder is imported again") {
  Scratch scratch;
  useCache(scratch);
  auto source = writeClasses(scratch);
  auto config = testConfig("image_folder", kj::str(source));
  CHECK(openDataset(config, silent())->classes() == 2);
  scratch.write("images/eel/1.jpg", jpegOf(7, {3, 16, 16}));
  CHECK(openDataset(config, silent())->classes() == 3);
}

TEST_CASE("openDataset: an image folder is imported again when other things are left out") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  auto opened = [&]() {
    auto dataset = openDataset(config, silent(), [](kj::StringPtr) {});
    return kj::str(dataset->training().count() + dataset->validation().count(), "; ",
        kj::strArray(dataset->leftOut(), "; "));
  };
  CHECK(opened() == "20; ");
  scratch.write("far/1.jpg", jpegOf(7, {3, 16, 16}));
  REQUIRE(::symlink("../../far/1.jpg", scratch.path("images/cat/far.jpg").cStr()) == 0);
  CHECK(opened() == "21; ");
  REQUIRE(::rename(scratch.path("far").cStr(), scratch.path("gone").cStr()) == 0);
  auto begin = kj::str("20; left out 1 entry of ", scratch.path("images"),
      " that is not a regular file: cat/far.jpg ");
  CHECK(opened() == kj::str(begin, "(a link to nothing)"));
  REQUIRE(::unlink(scratch.path("images/cat/far.jpg").cStr()) == 0);
  REQUIRE(::mkfifo(scratch.path("images/cat/far.jpg").cStr(), 0666) == 0);
  CHECK(opened() == kj::str(begin, "(a pipe)"));
  scratch.write("images/cat/.x", nullptr);
  CHECK(tests::contains(opened(), "left out 1 hidden file or folder of "));
  REQUIRE(::unlink(scratch.path("images/cat/.x").cStr()) == 0);
  CHECK(opened() == kj::str(begin, "(a pipe)"));
}

TEST_CASE("openDataset: what an import left out is kept beside its records") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  CHECK(openDataset(config, silent())->leftOut().size() == 0);
  scratch.write("images/x.png", nullptr);
  config.onBadRecord = BadRecordPolicy::SKIP;
  for (uint i = 0; i < 7; ++i) scratch.write(kj::str("images/cat/bad-", i, ".jpg"), nullptr);
  kj::Vector<kj::String> told;
  Warn warn = [&](kj::StringPtr sentence) { told.add(kj::str(sentence)); };
  auto check = [&](const Dataset& dataset) {
    auto leftOut = dataset.leftOut();
    REQUIRE(leftOut.size() == 6);
    for (uint i = 0; i < 5; ++i) CHECK(leftOut[i] == told[i]);
    CHECK(leftOut[5].startsWith("4 more sentences on what the import left out: see "));
    CHECK(leftOut[5].endsWith("/left_out.txt"));
  };
  check(*openDataset(config, silent(), kj::mv(warn)));
  // One per bad image, one on their number, one on the other file.
  CHECK(told.size() == 9);
  check(*openDataset(config, silent()));
  packDataset(config, scratch.path("packed"), silent(), [](kj::StringPtr) {});
  config.source = scratch.path("packed");
  check(*openDataset(config, silent()));
}

TEST_CASE("openDataset: six sentences on what an import left out are not shortened") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  config.onBadRecord = BadRecordPolicy::SKIP;
  // One sentence per bad image, and one on their number.
  for (uint i = 0; i < 5; ++i) scratch.write(kj::str("images/cat/bad-", i, ".jpg"), nullptr);
  kj::Vector<kj::String> told;
  auto dataset =
      openDataset(config, silent(), [&](kj::StringPtr sentence) { told.add(kj::str(sentence)); });
  CHECK(told.size() == 6);
  CHECK(kj::strArray(dataset->leftOut(), "\n") == kj::strArray(told, "\n"));
}

TEST_CASE("openDataset: a mean image that is damaged or of other records is refused by name") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  auto packed = scratch.path("packed");
  packDataset(config, packed, silent());
  auto read = [&]() {
    auto again = testConfig("image_folder", kj::str(packed));
    again.augment.meanImage = true;
    return kj::heapArray<float>(openDataset(again, silent())->meanImage());
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
                                             "; delete it and the next run computes it again"));
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
            ": it is a folder; delete it and the next run computes it again"));
  REQUIRE(::rmdir(path.cStr()) == 0);
  // An older program wrote the numbers alone. Nothing says whether they are good.
  scratch.write(kj::str("packed/", MEAN_FILE), zeros.slice(0, 768 * 4));
  CHECK(read() == good);
  CHECK(contentOfFile() == bytes);

  // The records of another folder.
  scratch.write("images/dog/113.jpg", jpegOf(250, {3, 16, 16}));
  auto other = scratch.path("other");
  packDataset(testConfig("image_folder", scratch.path("images")), other, silent());
  REQUIRE(::rename(kj::str(other, "/", TRAINING_FILE).cStr(),
              kj::str(packed, "/", TRAINING_FILE).cStr()) == 0);
  CHECK(thrownBy([&]() { read(); }).size() > 0);
}

TEST_CASE("packDataset: what is not a new folder is refused before anything is read") {
  Scratch scratch;
  auto config = testConfig("image_folder", scratch.path("images"));
  CHECK(thrownBy([&]() { packDataset(config, "/dev/null", silent()); }) ==
        "cannot write records to /dev/null (a device): name a new folder");
}

TEST_CASE("openDataset: a source that is a pipe is not waited for, and called so") {
  Scratch scratch;
  useCache(scratch);
  auto pipe = scratch.path("photos.tar");
  REQUIRE(::mkfifo(pipe.cStr(), 0600) == 0);
  CHECK(thrownBy([&]() {
    openDataset(testConfig("image_folder", kj::str(pipe)), silent());
  }).startsWith(kj::str(pipe, " (a pipe) is not a folder or an archive: set ")));
  auto message = thrownBy([&]() { openDataset(testConfig("mnist", kj::str(pipe)), silent()); });
  INFO(message.cStr());
  CHECK(strstr(message.cStr(), " (a pipe) is not a folder or an archive") != nullptr);
}

TEST_CASE("openDataset: a mean image that cannot be written is told of, and used") {
  Scratch scratch;
  useCache(scratch);
  auto packed = scratch.path("packed");
  packDataset(testConfig("image_folder", writeClasses(scratch)), packed, silent());
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
  auto size = openDataset(config, silent(), kj::mv(warn))->meanImage().size();
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(size == 768);
  REQUIRE(told.size() == 1);
  CHECK(told[0] ==
        kj::str("the mean image is not kept: ", path, " cannot be written: File too large"));
  CHECK(namesIn(packed).size() == 2);
  // Of a folder that is read-only nobody expects it.
  AsOrdinaryUser user;
  REQUIRE(::chmod(packed.cStr(), 0555) == 0);
  told.clear();
  Warn again = [&](kj::StringPtr sentence) { told.add(kj::str(sentence)); };
  CHECK(openDataset(config, silent(), kj::mv(again))->meanImage().size() == 768);
  CHECK(told.size() == 0);
  REQUIRE(::chmod(packed.cStr(), 0755) == 0);
}

TEST_CASE("packDataset: a failure names the flags of pack_records, and leaves nothing") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  config.names.skip = "give --skip-bad";
  // Its header is good.
  auto planes = kj::heapArray<kj::byte>(3 * 16 * 16);
  for (auto i: kj::indices(planes)) planes[i] = i * 37 % 251;
  auto file = encodeJpeg({{3, 16, 16}, Layout::PLANES, planes});
  scratch.write("images/cat/103.jpg", file.slice(0, file.size() * 4 / 5));
  auto packed = scratch.path("packed");
  auto message = thrownBy([&]() { packDataset(config, packed, silent()); });
  CHECK(message.startsWith("cannot import cat/103.jpg of "));
  CHECK(message.endsWith("; repair or remove it, or give --skip-bad"));
  CHECK(::access(packed.cStr(), F_OK) != 0);
  config.onBadRecord = BadRecordPolicy::SKIP;
  packDataset(config, packed, silent());
  CHECK(::access(kj::str(packed, "/", MEAN_FILE).cStr(), F_OK) == 0);
}

TEST_CASE("packDataset: messages name the folder that is to be, not the one that is written") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  config.names.folder = "OUT";
  auto packed = scratch.path("packed");
  struct rlimit before, small;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  small = before;
  small.rlim_cur = 8192;
  ::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  auto message = thrownBy([&]() { packDataset(config, packed, silent()); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(message.startsWith(kj::str("cannot ")));
  CHECK(tests::contains(message, kj::str(" the record database ", packed, "/training.mdb: ")));
  CHECK(!tests::contains(message, ".part"));
  scratch.write("file", nullptr);
  CHECK(thrownBy([&]() { packDataset(config, scratch.path("file/packed"), silent()); }) ==
        kj::str("cannot make the folder ", scratch.path("file/packed"),
            ": Not a directory; set OUT to a folder that can be written"));
}

TEST_CASE("packDataset: a slash behind the folder's name changes nothing") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  CHECK(thrownBy([&]() { packDataset(config, scratch.path("packed/."), silent()); }) ==
        kj::str(scratch.path("packed/."), " names no new folder"));
  CHECK(::access(scratch.path("packed").cStr(), F_OK) != 0);
  packDataset(config, scratch.path("packed/"), silent());
  CHECK(namesIn(scratch.path("packed")).size() == 3);
}

TEST_CASE("packDataset: two at once into one folder are kept apart") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  config.names.folder = "OUT";
  auto packed = scratch.path("packed");
  kj::String other;
  bool isFirst = true;
  // The second begins while the first one is at work.
  packDataset(config, packed, [&](kj::StringPtr, uint64_t, uint64_t) {
    if (!isFirst) return;
    isFirst = false;
    other = thrownBy([&]() { packDataset(config, packed, silent()); });
  });
  CHECK(other == kj::str("another process is writing ", packed,
                     ": wait until it has ended, or set OUT to another folder"));
  CHECK(namesIn(packed).size() == 3);
}

TEST_CASE("packDataset: what a killed process left behind is removed") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  auto pid = ::fork();
  if (pid == 0) {
    packDataset(config, scratch.path("packed"),
        [](kj::StringPtr, uint64_t, uint64_t) { ::raise(SIGKILL); });
  }
  int status;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(::access(scratch.path("packed.part/training.mdb").cStr(), F_OK) != 0);
  REQUIRE(namesIn(scratch.path("packed.part")).size() > 1);
  packDataset(config, scratch.path("packed"), silent());
  CHECK(namesIn(scratch.path("packed")).size() == 3);
  CHECK(::access(scratch.path("packed.part").cStr(), F_OK) != 0);
  // Nobody asked for a file to be removed.
  scratch.write("other.part", nullptr);
  CHECK(thrownBy([&]() { packDataset(config, scratch.path("other"), silent()); }) ==
        kj::str("cannot open the folder ", scratch.path("other.part"), ": Not a directory"));
}

TEST_CASE("packDataset: a folder of somebody else at the place of the unfinished one is refused") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  config.names.folder = "OUT";
  auto part = scratch.path("packed.part");
  // Another data set, packed under that name.
  packDataset(config, part, silent());
  CHECK(thrownBy([&]() {
    packDataset(config, scratch.path("packed"), silent());
  }).startsWith(kj::str("the folder ", part, " is in the way: it holds ")));
  CHECK(namesIn(part).size() == 3);
  CHECK(::access(scratch.path("packed").cStr(), F_OK) != 0);
}

TEST_CASE("openDataset: what an import that was killed left in the cache, the next one removes") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
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
  // Of other images: those have another place in the cache.
  scratch.write("images/cat/999.jpg", jpegOf(1, {3, 16, 16}));
  uint atWork = 0;
  auto check = [&](kj::StringPtr, uint64_t, uint64_t) {
    // One import does not touch what another one is writing.
    if (atWork++ > 0) return;
    CHECK(unfinished() == 1);
    scratch.write("images/cat/998.jpg", jpegOf(1, {3, 16, 16}));
    openDataset(config, silent());
    CHECK(unfinished() == 1);
  };
  // It reports progress while it lists the images, before it has looked at any.
  kj::runCatchingExceptions([&]() { openDataset(config, check); });
  CHECK(atWork > 0);
  CHECK(unfinished() == 0);
}

TEST_CASE("openDataset: messages name the source of images, not their folder in the cache") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  config.augment.crop = 17;
  CHECK(thrownBy([&]() { openDataset(config, silent()); }) ==
        kj::str("data.augment.crop = 17 is larger than the images of ", scratch.path("images"),
            ", which have 16×16 pixels"));
}

TEST_CASE("packDataset: a packed folder is a source of its own, and holds the mean image") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  auto packed = scratch.path("packed");
  packDataset(config, packed, silent());
  CHECK(namesIn(packed).size() == 3);
  auto again = testConfig("image_folder", kj::str(packed));
  again.augment.meanImage = true;
  auto dataset = openDataset(again, silent());
  CHECK(dataset->training().count() == 18);
  CHECK(dataset->training().path().startsWith(packed));
  auto resized = testConfig("image_folder", kj::str(packed));
  resized.resizeShortSide = 7;
  CHECK(thrownBy([&]() { openDataset(resized, silent()); }) ==
        kj::str("the records in ", packed,
            " were packed with a short side of 16 pixels, not 7: set data.resize_short_side to "
            "what was packed, or leave it out"));
  CHECK(dataset->meanImage().size() == 768);
  CHECK(thrownBy([&]() { openDataset(testConfig("mnist", kj::str(packed)), silent()); }) ==
        kj::str("the records in ", packed,
            " are not those of the data set mnist: 18 + 2 images of 3×16×16 in 2 classes; set "
            "data.dataset or data.resize_short_side to what was packed"));
  REQUIRE(::unlink(kj::str(packed, "/", TRAINING_FILE).cStr()) == 0);
  CHECK(thrownBy([&]() { openDataset(again, silent()); }) ==
        kj::str("the folder of packed records ", packed,
            " has no training.mdb: write it again with pack_records"));
  CHECK(thrownBy([&]() { packDataset(config, packed, silent()); }) ==
        kj::str(packed, " is there already: name a new folder"));
}

TEST_CASE(
    "openDataset: images of different sizes need a crop, and the message names their source") {
  Scratch scratch;
  useCache(scratch);
  scratch.write("images/cat/1.jpg", jpegOf(1, {3, 16, 16}));
  scratch.write("images/dog/2.jpg", jpegOf(1, {3, 16, 20}));
  auto source = scratch.path("images");
  CHECK(thrownBy([&]() { openDataset(testConfig("image_folder", kj::str(source)), silent()); }) ==
        kj::str("images in ", source, " have different sizes; set data.augment.crop"));
}

TEST_CASE("openDataset: packed images of different sizes are said to have no one short side") {
  Scratch scratch;
  useCache(scratch);
  const uint sides[] = {20, 20, 17, 18};
  for (auto i: kj::indices(sides)) {
    scratch.write(kj::str("images/", i % 2, "/", 10 + i, ".jpg"),
        jpegOf(i, {3, sides[i], sides[i] + 10 + uint(i)}));
  }
  auto packed = scratch.path("packed");
  packDataset(testConfig("image_folder", scratch.path("images")), packed, silent());
  auto config = testConfig("image_folder", kj::str(packed));
  config.augment.crop = 8;
  CHECK(thrownBy([&]() { openDataset(config, silent()); }) == "");
  // The first record has this side, but not the others.
  for (uint wanted: {20, 12}) {
    config.resizeShortSide = wanted;
    CHECK(
        thrownBy([&]() { openDataset(config, silent()); }) ==
        kj::str("the records in ", packed,
            " were packed without one short side for all: they have 17 to 20 pixels, not ", wanted,
            "; leave data.resize_short_side out, or pack them again with --resize ", wanted));
  }

  // Packed with one short side, in different shapes.
  auto resized = testConfig("image_folder", scratch.path("images"));
  resized.resizeShortSide = 12;
  packDataset(resized, scratch.path("resized"), silent());
  config = testConfig("image_folder", scratch.path("resized"));
  config.augment.crop = 8;
  config.resizeShortSide = 12;
  CHECK(thrownBy([&]() { openDataset(config, silent()); }) == "");
  config.resizeShortSide = 13;
  CHECK(thrownBy([&]() { openDataset(config, silent()); }) ==
        kj::str("the records in ", scratch.path("resized"),
            " were packed with a short side of 12 pixels, not 13: set data.resize_short_side to "
            "what was packed, or leave it out"));
}

TEST_CASE(
    "openDataset: of processes that start at the same moment one imports, all read the same") {
  Scratch scratch;
  useCache(scratch);
  auto config = testConfig("image_folder", writeClasses(scratch));
  // Each process waits at the gate until all are there, imports, and tells whether it did.
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

TEST_CASE("factsOf: what is known of a data set before it is fetched") {
  auto config = testConfig("cifar10");
  auto facts = KJ_ASSERT_NONNULL(factsOf(config));
  CHECK(facts.shape == ImageShape{3, 32, 32});
  CHECK(facts.classes == 10);
  CHECK(facts.trainingRecords == 50000);
  CHECK(facts.validationRecords == 10000);
  config.resizeShortSide = 64;
  CHECK(KJ_ASSERT_NONNULL(factsOf(config)).shape == ImageShape{3, 64, 64});
  CHECK(factsOf(testConfig("image_folder")) == nullptr);
}

}  // namespace io
