#include "io/testing/image_folder.h"

#include <kj/debug.h>
#include <kj/filesystem.h>
#include <stdlib.h>

#include <cstring>

#include "io/images/jpeg.h"

namespace io {

CacheScratch::CacheScratch() {
  KJ_ASSERT(::setenv("RUNNER_CACHE", path("cache").cStr(), 1) == 0);
}

ImageFolder::ImageFolder(): config(testConfig("image_folder", path("images"))) {
  for (uint i = 0; i < 20; ++i) {
    write(kj::str("images/", i < 12 ? "cat" : "dog", "/", 100 + i, ".jpg"), jpegOf(i * 10));
  }
}

kj::Array<kj::byte> jpegOf(kj::byte level, ImageShape shape) {
  auto planes = kj::heapArray<kj::byte>(shape.size());
  memset(planes.begin(), level, planes.size());
  return encodeJpeg({shape, Layout::PLANES, planes});
}

kj::Array<kj::String> namesIn(kj::StringPtr folder) {
  auto filesystem = kj::newDiskFilesystem();
  auto opened = filesystem->getRoot().openSubdir(kj::Path(nullptr).evalNative(folder));
  return KJ_MAP(name, opened->listNames()) {
    return kj::str(name);
  };
}

}  // namespace io
