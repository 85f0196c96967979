// An archive of images, a compressed file, or a list of labels. The first byte says which.
//
// liblzma takes the memory that the head of an xz file asks for, and touches it only as data come.
// Therefore this target needs -malloc_limit_mb=1500.
#include <kj/filesystem.h>
#include <unistd.h>

#include "io/datasets/archives.h"
#include "io/datasets/import_folder.h"
#include "io/datasets/labels.h"
#include "io/records/record_db.h"
#include "io/testing/scratch.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

constexpr size_t UNPACKED_BYTES_MAX = 1 << 20;

void readMembers(kj::StringPtr path) {
  auto members = io::Members::open(path);
  for (;;) {
    KJ_IF_MAYBE(name, members->next()) {
      kj::str(*name);
      refusalOf([&]() { members->read(UNPACKED_BYTES_MAX); });
    } else {
      return;
    }
  }
}

// With `validates`, the same images are for validation, too.
void importImages(kj::StringPtr path, bool validates) {
  auto config = io::testConfig("image_folder", kj::str(path));
  config.onBadRecord = io::BadRecordPolicy::SKIP;
  io::ImagePlace place{kj::str(path), nullptr};
  auto training = io::RecordWriter::create(kj::str(folder(), "/training.mdb"));
  auto validation = io::RecordWriter::create(kj::str(folder(), "/validation.mdb"));
  io::Progress progress = io::unheard();
  io::Warn warn = [](kj::StringPtr) {};
  kj::Maybe<io::ImagePlace> validationPlace;
  if (validates) validationPlace = io::ImagePlace{kj::str(path), nullptr};
  ::unlink(kj::str(folder(), "/", io::BAD_IMAGES_FILE).cStr());
  io::BadImages badImages(folder());
  io::importFolder(
      config, place, validationPlace, *training, *validation, badImages, progress, warn);
}

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  uint8_t choice = dice.byte();
  auto rest = dice.all();
  switch (choice % 4) {
    case 0:
      return readMembers(fileOf("images.tar", rest));
    case 1:
      io::readUnpacked(fileOf("images.gz", rest), UNPACKED_BYTES_MAX);
      return;
    case 2:
      io::parseLabels("labels.tsv", rest, "images/");
      return;
    case 3:
      return importImages(fileOf("images.tar", rest), choice >= 128);
  }
}

}  // namespace fuzz
