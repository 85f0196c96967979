// runner/system/growing_files.h: checksums of files that only grow, such as logs.
#pragma once

#include <kj/array.h>
#include <kj/map.h>
#include <kj/string.h>
#include <stdint.h>

#include "io/checksum.h"

namespace runner {

// How far a file has grown.
struct FileExtent {
  kj::String name;  // its path below the folder that it belongs to
  uint64_t bytes;
  kj::String sha256;  // of these bytes. Empty if it was not computed yet
};

// Returns the bytes of the file `name` in `extents`. 0 if it is not there.
uint64_t bytesOf(kj::ArrayPtr<const FileExtent> extents, kj::StringPtr name);

// The SHA-256 of the first bytes of files in a folder. Each call reads only what follows the bytes
// of the last one, so that a run may ask again and again while its logs grow. For one thread at a
// time.
class GrowingSums {
public:
  // `folder` must outlive it.
  explicit GrowingSums(kj::StringPtr folder): folder(folder) {}

  // Returns the sum of the first `bytes` bytes of a regular file, as 64 hexadecimal digits. Throws
  // a clause that begins with `what`, such as "the run's events.jsonl is cut short".
  kj::String of(kj::StringPtr name, uint64_t bytes, kj::StringPtr what);

private:
  struct Sum {
    uint64_t bytes = 0;
    kj::Own<io::Sha256> sum = kj::heap<io::Sha256>();
  };

  kj::StringPtr folder;
  kj::HashMap<kj::String, Sum> sums;
};

}  // namespace runner
