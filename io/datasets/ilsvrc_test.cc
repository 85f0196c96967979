#include "io/datasets/ilsvrc.h"

#include <doctest/doctest.h>
#include <stdio.h>

#include "io/paths.h"
#include "io/testing/archive_files.h"
#include "io/testing/imported_images.h"
#include "io/testing/mat_file.h"
#include "tests/text.h"

namespace io {

namespace {

// The kit counts classes in another order than that of their folders.
constexpr Synset SYNSETS[] = {{1, "n02"_kj, "kit fox, Vulpes macrotis"_kj},
    {2, "n01"_kj, "English setter"_kj}, {1001, "n00"_kj, "dog"_kj}};

// A folder with the files of ILSVRC2012, as they are downloaded.
struct Downloaded: Images {
  Downloaded() {
    writeKit("2\n1\n2\n");
    auto jpeg = kj::heapString(jpegOf(3).asChars());
    auto entry = [&](kj::StringPtr name) { return kj::str(name, "=", jpeg); };
    auto write = [&](kj::StringPtr name, kj::ArrayPtr<const kj::String> entries) {
      auto pointers = KJ_MAP(each, entries)->kj::StringPtr {
        return each;
      };
      writeTar(scratch.write(name, nullptr), pointers);
    };
    auto inner = [&](kj::StringPtr name, kj::ArrayPtr<const kj::String> entries) {
      write("inner.tar", entries);
      return kj::str(
          name, "=", kj::heapString(readFile(scratch.path("inner.tar"), 1 << 20).asChars()));
    };
    write("images/ILSVRC2012_img_train.tar",
        kj::arr(inner("n02.tar", kj::arr(entry("n02_1.JPEG"))),
            inner("n01.tar", kj::arr(entry("n01_1.JPEG"), entry("n01_7.JPEG")))));
    write("images/ILSVRC2012_img_val.tar",
        kj::arr(entry("ILSVRC2012_val_00000001.JPEG"), entry("ILSVRC2012_val_00000003.JPEG"),
            entry("ILSVRC2012_val_00000002.JPEG")));
  }

  void writeKit(kj::StringPtr truth) {
    auto table = kj::str(
        "ILSVRC2012_devkit_t12/data/meta.mat=", kj::heapString(matFileOf(SYNSETS, true).asChars()));
    auto entry =
        kj::str("ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt=", truth);
    kj::StringPtr entries[] = {table, entry};
    writeTar(kit(), entries);
  }
  kj::String kit() const { return scratch.write("images/ILSVRC2012_devkit_t12.tar.gz", nullptr); }
};

}  // namespace

TEST_CASE("ILSVRC2012: the files as downloaded give classes in the order of their folders") {
  Downloaded images;
  auto imported = images.import();
  CHECK(kj::strArray(imported.paths, " ") ==
        "n02/n02_1.JPEG n01/n01_1.JPEG n01/n01_7.JPEG ILSVRC2012_val_00000001.JPEG "
        "ILSVRC2012_val_00000003.JPEG ILSVRC2012_val_00000002.JPEG");
  CHECK(kj::strArray(imported.labels, " ") == "1 0 0 0 0 1");
  CHECK(imported.training == 3);
  CHECK(kj::strArray(imported.classNames, "; ") == "English setter; kit fox, Vulpes macrotis");
  CHECK(imported.warnings.size() == 0);
}

TEST_CASE("ILSVRC2012: reports errors in the development kit") {
  Downloaded images;
  auto kit = images.kit();
  images.writeKit("2\n1\n");
  CHECK(images.refusal() ==
        kj::str("1 image of ", images.folder(),
            "/ILSVRC2012_img_val.tar cannot be labelled: "
            "ILSVRC2012_val_00000003.JPEG. The name must end in a number from 1 to 2"));
  images.writeKit("2\n3\n1\n");
  CHECK(images.refusal() == kj::str("ILSVRC2012_validation_ground_truth.txt of ", kit,
                                ", line 2: the line is not the number of a class in meta.mat"));
  images.writeKit("2\n1001\n1\n");
  CHECK(images.refusal() == kj::str("1 image of ", images.folder(),
                                "/ILSVRC2012_img_val.tar is of a class that no "
                                "training image has: ILSVRC2012_val_00000002.JPEG (n00)"));
  writeTar(kit, {"data/readme.txt=x"_kj});
  CHECK(images.refusal() ==
        kj::str(kit,
            " does not contain meta.mat. Get the development kit of ILSVRC2012 (task 1) "
            "again"));
  REQUIRE(::remove(kit.cStr()) == 0);
  CHECK(images.refusal() ==
        kj::str(images.folder(),
            " has ILSVRC2012_img_val.tar, but not "
            "ILSVRC2012_devkit_t12.tar.gz, which says what its images show. Add it, or set "
            "data.validation_source to validation images with labels"));
}

}  // namespace io
