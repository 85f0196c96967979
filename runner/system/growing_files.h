// runner/system/growing_files.h: files that only grow, such as logs: their checksums, and how they
// get to the disk.
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

// Files in a folder. A run may call these functions again and again while its logs grow: each call
// only cares about what follows the bytes of the last one. For one thread at a time.
class GrowingFiles {
public:
  // `folder` must outlive it.
  explicit GrowingFiles(kj::StringPtr folder): folder(folder) {}

  // Returns the CRC-32 of the first `bytes` bytes of a regular file. Throws a clause that begins
  // with `what`, such as "the run's events.jsonl is cut short".
  uint32_t sumOf(kj::StringPtr name, uint64_t bytes, kj::StringPtr what);
  // Waits until the file is on the disk. After a call that has failed, also writes again what may
  // be missing there. Does nothing if there is no such file. Throws with path, cause and way out.
  void sync(kj::StringPtr name);

private:
  struct Known {
    uint64_t bytes = 0;  // that crc32 is of
    uint32_t crc32 = 0;
    uint64_t synced_bytes = 0;
    bool isUnsure = false;  // whether later bytes may be neither on the disk nor waiting for it
  };

  Known& known(kj::StringPtr name);

  kj::StringPtr folder;
  kj::HashMap<kj::String, Known> files;
};

}  // namespace runner
