// runner/system/growing_files.h: checksums of files that only grow, such as logs.
#pragma once

#include <kj/array.h>
#include <kj/map.h>
#include <kj/string.h>
#include <stdint.h>

namespace runner {

// How far a file has grown.
struct FileExtent {
  kj::String name;  // its path below the folder that it belongs to
  uint64_t bytes;
  uint32_t crc32 = 0;  // of these bytes. 0 as well if it was not computed yet
};

// Returns the bytes of the file `name` in `extents`. 0 if it is not there.
uint64_t bytesOf(kj::ArrayPtr<const FileExtent> extents, kj::StringPtr name);

// The CRC-32 of the first bytes of files in a folder. Each call reads only what follows the bytes
// of the last one, so that a run may ask again and again while its logs grow. For one thread at a
// time.
class GrowingSums {
public:
  // `folder` must outlive it.
  explicit GrowingSums(kj::StringPtr folder): folder(folder) {}

  // Returns the sum of the first `bytes` bytes of a regular file. Throws a clause that begins with
  // `what`, such as "the run's events.jsonl is cut short".
  uint32_t of(kj::StringPtr name, uint64_t bytes, kj::StringPtr what);

private:
  struct Sum {
    uint64_t bytes = 0;
    uint32_t crc32 = 0;
  };

  kj::StringPtr folder;
  kj::HashMap<kj::String, Sum> sums;
};

}  // namespace runner
