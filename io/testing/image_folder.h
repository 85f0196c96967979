// io/testing/image_folder.h: a cache of imports, and a folder of small JPEG files, for tests.
#pragma once

#include "io/image.h"
#include "io/progress.h"
#include "io/testing/scratch.h"

namespace io {

// A Scratch whose `cache` is this process's RUNNER_CACHE until the next CacheScratch is made.
class CacheScratch: public Scratch {
public:
  CacheScratch();
};

// A CacheScratch whose `images` holds twelve JPEG files of class "cat", then eight of class "dog".
class ImageFolder: public CacheScratch {
public:
  ImageFolder();

  DataConfig config;  // image_folder, with `images` as its source
};

// Returns a JPEG file of one grey level.
kj::Array<kj::byte> jpegOf(kj::byte level, ImageShape shape = {3, 16, 16});

// Returns the names of everything directly in a folder.
kj::Array<kj::String> namesIn(kj::StringPtr folder);

}  // namespace io
