// Files of image folders other than JPEG files, archives and labels.tsv (see import.cc): PNG files,
// Exif data, RecordIO files, archives in archives, lists, names of classes, and the table of
// ImageNet's development kit. The first byte says which.
#include <kj/filesystem.h>

#include "io/datasets/labels.h"
#include "io/datasets/mat_file.h"
#include "io/datasets/nested_archives.h"
#include "io/datasets/record_io.h"
#include "io/images/orientation.h"
#include "io/images/png.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

constexpr size_t FILE_BYTES_MAX = 1 << 20;

void readMembers(kj::Own<io::Members> members) {
  for (;;) {
    KJ_IF_MAYBE(name, members->next()) {
      kj::str(*name);
      refusalOf([&]() { members->read(FILE_BYTES_MAX); });
    } else {
      return;
    }
  }
}

void readPng(Bytes file) {
  auto image = io::decodePng(file);
  must(image.pixels.size() == image.shape.size(), "pixels");
  auto orientation = io::orientationOf(file);
  auto turned = io::upright(image.pixels, image.shape, orientation);
  must(turned.size() == image.shape.size(), "turned pixels");
}

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  uint8_t choice = dice.byte();
  auto rest = dice.all();
  switch (choice % 7) {
    case 0:
      return readPng(rest);
    case 1:
      must(io::orientationOf(rest) <= 8, "orientation");
      return;
    case 2:
      return readMembers(io::openRecordIo(fileOf("images.rec", rest)));
    case 3:
      return readMembers(io::openNested(fileOf("images.tar", rest)));
    case 4:
      io::parseLabels("list.lst", rest, "images/");
      return;
    case 5: {
      auto folders = kj::arr(kj::str("a/n01"), kj::str("n02"));
      io::readClassNames(fileOf("names.txt", rest), choice >= 128 ? folders.asPtr() : nullptr);
      return;
    }
    case 6:
      io::matTable(rest, "synsets");
      return;
  }
}

}  // namespace fuzz
