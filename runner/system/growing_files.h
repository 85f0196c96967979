// runner/system/growing_files.h: files that only grow, such as logs: computes their checksums, and
// syncs them to the disk.
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
  uint32_t crc32 = 0;  // of these bytes. Also 0 if it has not been computed
};

// Returns the bytes of the file `name` in `extents`. 0 if `extents` does not have the file.
uint64_t bytesOf(kj::ArrayPtr<const FileExtent> extents, kj::StringPtr name);

// Files in a folder. A run may call these functions again and again while its logs grow: each call
// only reads or syncs the bytes that were added since the last one. For one thread at a time.
class GrowingFiles {
public:
  // `folder` must outlive it.
  explicit GrowingFiles(kj::StringPtr folder): folder(folder) {}

  // Returns the CRC-32 of the first `bytes` bytes of a regular file. Throws an exception whose text
  // begins with `what`, such as "the run's events.jsonl is cut short".
  uint32_t sumOf(kj::StringPtr name, uint64_t bytes, kj::StringPtr what);
  // Lets the next sumOf() read the whole file again, and so notice if its old bytes have changed.
  void forgetSumOf(kj::StringPtr name);
  // Waits until the file is on the disk. After a failed call, also writes again the bytes that may
  // be missing on the disk. Does nothing if the file does not exist. Throws with path, cause and
  // what to do.
  void sync(kj::StringPtr name);

private:
  struct Known {
    uint64_t bytes = 0;  // whose checksum is crc32
    uint32_t crc32 = 0;
    uint64_t synced_bytes = 0;
    // Whether later bytes may be lost: neither on the disk nor in the kernel's cache.
    bool isUnsure = false;
  };

  Known& known(kj::StringPtr name);

  kj::StringPtr folder;
  kj::HashMap<kj::String, Known> files;
};

}  // namespace runner
