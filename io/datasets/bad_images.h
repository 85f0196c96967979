// io/datasets/bad_images.h: which images an import has left out so far, in a file.
#pragma once

#include <kj/common.h>
#include <kj/map.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

// The name of that file, in the folder of an import that is not finished.
constexpr kj::StringPtr BAD_IMAGES_FILE = "bad_images.txt"_kj;

// Tells the next process which images a killed one has left out, so that both number their records
// in the same way.
class BadImages {
public:
  // Reads BAD_IMAGES_FILE in `folder`, if it exists.
  explicit BadImages(kj::StringPtr folder);

  // Returns why image `number` was left out. Null if it was not. Valid until the next add().
  kj::Maybe<kj::StringPtr> find(uint64_t number) const;
  // Records that image `number` was left out, and writes that to the file immediately.
  void add(uint64_t number, kj::StringPtr reason);

private:
  kj::String path;
  kj::HashMap<uint64_t, kj::String> reasons;
};

}  // namespace io
