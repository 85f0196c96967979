// io/testing/imported_images.h: a folder of images, and the result of its import, for tests.
#pragma once

#include <kj/vector.h>

#include "io/testing/image_folder.h"
#include "io/testing/scratch.h"

namespace io {

struct Imported {
  kj::Vector<kj::String> warnings;
  kj::Vector<kj::String> paths;  // of all images, training images first
  kj::Vector<uint32_t> labels;
  kj::Vector<uint64_t> ids;
  kj::Array<kj::String> classNames;
  uint64_t training = 0;  // how many of them are for training
};

// A folder of images, and the result of its import.
struct Images {
  Scratch scratch;
  DataConfig config = testConfig("image_folder");

  Images() { config.source = scratch.path("images"); }

  kj::String folder() const { return scratch.path("images"); }
  void write(kj::StringPtr name, kj::ArrayPtr<const kj::byte> bytes) {
    scratch.write(kj::str("images/", name), bytes);
  }
  // Writes `count` images in each of the classes cat and dog.
  void writeClasses(uint count);
  void skipBad() { config.onBadRecord = BadRecordPolicy::SKIP; }
  // Packs the folder into an archive, from its sub-folder `from` on, and imports the archive.
  kj::String pack(kj::StringPtr from);

  Imported import();
  // Returns the error of an import, or "" if there is none.
  kj::String refusal();
};

}  // namespace io
