// io/archives.h: the files in a folder or in an archive, one after the other.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/memory.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

// Goes through the regular files of a folder (sorted by path, sub-folders included) or of an
// archive of any format that libarchive reads (in the archive's own order).
class Members {
public:
  // Throws if `path` is neither, naming the cause.
  static kj::Own<Members> open(kj::StringPtr path);
  virtual ~Members() noexcept(false) = default;

  // The path of the next file, relative, `/` between folders, without a leading `./`; null after
  // the last. Valid until the next call.
  virtual kj::Maybe<kj::StringPtr> next() = 0;
  // The content of that file; once a file. Throws if it is larger than `sizeMax`, before taking
  // memory for it.
  virtual kj::Array<kj::byte> read(size_t sizeMax) = 0;

  // How far it has come, in bytes of the archive or files of the folder.
  virtual uint64_t done() const = 0;
  virtual uint64_t total() const = 0;
};

// A file's whole content, unpacked if it is compressed (gzip, xz, bzip2, zstd). Throws if it cannot
// be read, or is larger than `sizeMax`.
kj::Array<kj::byte> readUnpacked(kj::StringPtr path, size_t sizeMax);

}  // namespace io
