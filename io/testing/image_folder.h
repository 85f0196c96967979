// io/testing/image_folder.h: for tests: a cache of imports, and a folder of small JPEG files.
#pragma once

#include "io/image.h"
#include "io/progress.h"
#include "io/testing/scratch.h"

namespace io {

// A Scratch whose `cache` is RUNNER_CACHE of this process until the next one is made.
class CacheScratch: public Scratch {
public:
  CacheScratch();
};

// Such a one whose `images` holds twelve JPEG files of class "cat", then eight of class "dog".
class ImageFolder: public CacheScratch {
public:
  ImageFolder();

  DataConfig config;  // image_folder, with `images` as its source
};

// Returns a JPEG file of one grey level.
kj::Array<kj::byte> jpegOf(kj::byte level, ImageShape shape = {3, 16, 16});

// The names of all that is in a folder, without what is below.
kj::Array<kj::String> namesIn(kj::StringPtr folder);

Progress silent();

}  // namespace io
