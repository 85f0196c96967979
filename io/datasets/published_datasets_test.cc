// Tests the public data sets: their content, and where they are looked for.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "io/checksum.h"
#include "io/datasets/datasets.h"
#include "io/datasets/sources.h"
#include "io/images/jpeg.h"
#include "io/testing/image_folder.h"
#include "io/testing/scratch.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace io {

namespace {

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

// A data set in the format of CIFAR-100, also without checksums, but with three images of 3×2×2.
constexpr DatasetFile TINY_FILES[] = {{"train.bin", 28, nullptr}, {"test.bin", 14, nullptr}};
constexpr DatasetSource TINY_SOURCE = {
    .format = DatasetSource::CIFAR,
    .shape = {3, 2, 2},
    .classes = 2,
    .trainingRecords = 2,
    .validationRecords = 1,
    .encoding = Encoding::RAW,
    .files = {TINY_FILES, 2},
    .folder = "tiny",
    .labels = 2,
};
constexpr DatasetKind TINY = {"tiny", "", &TINY_SOURCE};

}  // namespace

TEST_CASE("openDataset: MNIST has its images, labels and mean") {
  auto datasets = sharedDatasets("mnist/train-images-idx3-ubyte.gz");
  if (datasets == nullptr) SKIP_CASE("RUNNER_DATASETS has no mnist");
  CacheScratch scratch;
  auto config = testConfig("mnist");
  config.augment.meanImage = true;
  auto dataset = openDataset(config, unheard());
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

TEST_CASE("openDataset: uses the classes that data.classes names, in their order") {
  if (::access("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz", R_OK) != 0) {
    SKIP_CASE("dataset-fashion-mnist is not installed");
  }
  CacheScratch scratch;
  auto config = testConfig("fashion_mnist");
  auto all = openDataset(config, unheard());
  config.classes = kj::arr(kj::str("Bag"), kj::str("Coat"));  // 8 and 4 of all ten
  CHECK(factsOf(config) == nullptr);
  CHECK(areRecordsKnown(config));
  auto dataset = openDataset(config, unheard());
  CHECK(dataset->classes() == 2);
  CHECK(kj::strArray(dataset->classNames(), " ") == "Bag Coat");
  CHECK(dataset->training().count() == 12000);
  CHECK(dataset->validation().count() == 2000);
  auto reader = RecordReader::open(dataset->training());
  auto whole = RecordReader::open(all->training());
  uint64_t bags = 0;
  for (uint64_t i = 0; i < 200; i++) {
    auto record = reader->read(i);
    auto original = whole->read(record.id);
    CHECK(original.label == (record.label == 0 ? 8 : 4));
    CHECK(original.bytes == record.bytes);
    bags += record.label == 0;
  }
  CHECK(bags > 50);
  CHECK(bags < 150);
}

TEST_CASE("openDataset: reads Fashion-MNIST from Debian's package, and later from the cache") {
  if (::access("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz", R_OK) != 0) {
    SKIP_CASE("dataset-fashion-mnist is not installed");
  }
  CacheScratch scratch;
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
    openDataset(mistyped, unheard());
  }).startsWith("cannot find the data set fashion_mnist: "));
  CHECK(second->training().digest() == first->training().digest());
}

TEST_CASE("openDataset: reads CIFAR-10 from an archive of any kind, with the published means") {
  auto datasets = sharedDatasets("cifar10");
  if (datasets == nullptr) SKIP_CASE("RUNNER_DATASETS has no cifar10");
  CacheScratch scratch;
  auto config = testConfig("cifar10");
  config.augment.meanImage = true;
  config.augment.crop = 28;
  auto dataset = openDataset(config, unheard());
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

TEST_CASE("openDataset: the ImageNet sample keeps its JPEG files and its labels with gaps") {
  auto datasets = sharedDatasets("imagenet-sample/labels.tsv");
  if (datasets == nullptr) SKIP_CASE("RUNNER_DATASETS has no imagenet-sample");
  CacheScratch scratch;
  auto config = testConfig("image_folder");
  CHECK(thrownBy([&]() { openDataset(config, unheard()); }).endsWith("Set data.augment.crop"));
  config.augment.crop = 56;
  auto dataset = openDataset(config, unheard());
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

TEST_CASE("openDataset: looks for a source in a folder, in the folder above, and on a mirror") {
  auto datasets = sharedDatasets("mnist/train-images-idx3-ubyte.gz");
  if (datasets == nullptr) SKIP_CASE("RUNNER_DATASETS has no mnist");
  auto folder = kj::str(KJ_ASSERT_NONNULL(datasets));
  kj::Vector<kj::String> digests;
  for (auto& source: kj::arr(kj::str(folder), kj::str(folder, "/mnist"), kj::str("file://", folder),
           kj::str("file://", folder, "/mnist/"))) {
    CacheScratch scratch;
    auto dataset = openDataset(testConfig("mnist", kj::str(source)), unheard());
    digests.add(sha256Hex(dataset->training().digest()));
    // The cache keeps no downloads.
    for (auto& name: namesIn(scratch.path("cache"))) {
      if (!name.endsWith(".lock"))
        CHECK(namesIn(scratch.path(kj::str("cache/", name))).size() == 2);
    }
  }
  for (auto& digest: digests) CHECK(digest == digests[0]);
}

TEST_CASE("openDataset: refuses by name a source without the files, or with damaged ones") {
  CacheScratch scratch;
  auto empty = scratch.path("nothing");
  CHECK(thrownBy([&]() { openDataset(testConfig("mnist", kj::str(empty)), unheard()); }) ==
        kj::str("cannot find the data set mnist: ", empty,
            " is not there. Set data.source to a folder that contains train-images-idx3-ubyte.gz, "
            "train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz, or "
            "leave it out"));
  for (auto name: {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
           "t10k-labels-idx1-ubyte"}) {
    scratch.write(kj::str("short/", name), kj::StringPtr("x").asBytes());
  }
  scratch.write("all/mnist/train-images-idx3-ubyte", kj::StringPtr("x").asBytes());
  auto all = scratch.path("all");
  auto missing = thrownBy([&]() { openDataset(testConfig("mnist", kj::str(all)), unheard()); });
  CHECK(tests::contains(missing, kj::str(all, "/mnist has no train-labels-idx1-ubyte. Set ")));
  auto source = scratch.path("short");
  CHECK(thrownBy([&]() { openDataset(testConfig("cifar10", kj::str(source)), unheard()); }) ==
        kj::str("cannot find the data set cifar10: ", source,
            " has no data_batch_1.bin. Set data.source to a folder that contains "
            "cifar-10-binary.tar.gz, or leave it out"));
  CHECK(thrownBy([&]() { openDataset(testConfig("mnist", kj::str(source)), unheard()); }) ==
        kj::str("train-images-idx3-ubyte from ", source,
            "/train-images-idx3-ubyte is damaged: unpacked it has 1 bytes, not 47040016. Get it "
            "again, or set data.source to another place"));
  // The cache holds no unfinished import, and no lock of one.
  CHECK(namesIn(scratch.path("cache")).size() == 0);
}

TEST_CASE("openDataset: refuses files with another size or content than published") {
  CacheScratch scratch;
  // A file of the right size, with a wrong count in its header.
  auto idx = kj::heapArray<kj::byte>(47040016);
  memset(idx.begin(), 0, idx.size());
  const kj::byte header[] = {0, 0, 8, 3, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 28, 0, 0, 0, 28};
  memcpy(idx.begin(), header, sizeof(header));
  scratch.write("idx/train-images-idx3-ubyte", idx);
  for (auto name: {"train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    scratch.write(kj::str("idx/", name), nullptr);
  }
  auto refusal = [&](kj::StringPtr name, kj::StringPtr folder) {
    return thrownBy([&]() { openDataset(testConfig(name, scratch.path(folder)), unheard()); });
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
            "/data_batch_1.bin is damaged: unpacked it has 30729999 bytes, not 30730000. Get it "
            "again, or set data.source to another place"));
}

TEST_CASE("openDataset: imports files without a published checksum again if they have changed") {
  CacheScratch scratch;
  auto config = testConfig("cifar100", scratch.path("datasets/tiny"));
  CHECK(!areRecordsKnown(config));
  config.dataset = &TINY;
  // Each image has two labels before its pixels.
  auto write = [&](kj::StringPtr name, uint images, kj::byte pixel, time_t changed) {
    auto bytes = kj::heapArray<kj::byte>(images * 14);
    memset(bytes.begin(), pixel, bytes.size());
    for (uint i = 0; i < images; i++) bytes[14 * i] = 0, bytes[14 * i + 1] = i;
    auto path = scratch.write(kj::str("datasets/tiny/", name), bytes);
    const timespec times[2] = {{changed, 0}, {changed, 0}};
    KJ_SYSCALL(::utimensat(AT_FDCWD, path.cStr(), times, 0));
  };
  write("train.bin", 2, 7, 1);
  write("test.bin", 1, 8, 1);
  auto sum = recordsSha256(config);
  write("train.bin", 2, 9, 2);
  CHECK(recordsSha256(config) != sum);
  write("train.bin", 2, 7, 3);
  CHECK(recordsSha256(config) == sum);

  // The same files are found through RUNNER_DATASETS.
  config.source = nullptr;
  auto folder = scratch.path("datasets");
  CHECK(kj::strArray(findLocalFiles(config, folder.asPtr()), " ") ==
        kj::str(folder, "/tiny/train.bin ", folder, "/tiny/test.bin"));
  CHECK(findLocalFiles(config, nullptr).size() == 0);
}

TEST_CASE("factsOf: knows a data set of fixed content before it is fetched") {
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

TEST_CASE("openDataset: names a mirror with an unknown host name, with the way out") {
  CacheScratch scratch;
  auto mirror = kj::str("http://", kj::repeat('x', 64), ".invalid");
  auto refusal = [&](kj::StringPtr place) {
    return kj::str("cannot download ", mirror, place, "cifar-10-binary.tar.gz: Couldn't resolve ",
        "host name");
  };
  CHECK(thrownBy([&]() { openDataset(testConfig("cifar10", kj::str(mirror)), unheard()); }) ==
        kj::str("cannot find the data set cifar10: ", refusal("/cifar10/"), ", ", refusal("/"),
            ". Set data.source to a folder that contains cifar-10-binary.tar.gz, or leave it out"));
  // The cache holds no unfinished import, and no lock of one.
  CHECK(namesIn(scratch.path("cache")).size() == 0);
}

}  // namespace io
