// io/datasets/archives.h: the files in a folder or in an archive, one after the other.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/memory.h>
#include <kj/string.h>

#include <cstdint>

#include "io/left_out.h"

namespace io {

// Goes through the regular files of a folder (sorted by path, sub-folders included, links followed)
// or of an archive of any format that libarchive reads (in the archive's own order; hard links to
// its files come last, each with the content of the file that it names). Hidden files and what is
// in hidden folders are passed over. A name comes as often as the archive has it.
class Members {
public:
  // Throws if `path` is neither, naming the cause.
  static kj::Own<Members> open(kj::StringPtr path);
  virtual ~Members() noexcept(false) = default;

  // The path of the next file, relative, `/` between folders, without a leading `./`; null after
  // the last. Valid until the next call. Throws if the archive is damaged or ends early. Names are
  // UTF-8 where the archive says so, and then composed(); else its bytes. Throws also if a zip or
  // tar has two files or folders that composed() gives one name; of other formats nobody can tell.
  virtual kj::Maybe<kj::StringPtr> next() = 0;
  // The content of that file; once per file. Throws if it cannot be read, or is larger than
  // `bytesMax`, before taking memory for it. What is thrown begins with a verb ("has more than …"):
  // the caller names the file. next() may be called after that, and throws if the archive itself
  // cannot be read further.
  virtual kj::Array<kj::byte> read(size_t bytesMax) = 0;

  // What next() has passed over so far: entries that are neither regular files nor folders, each
  // with its kind; hidden files and folders, without what is in these (see hiddenPartOf()); and
  // what cannot be read, each with the reason: folders, and entries of archives by their names.
  virtual const LeftOut& notRegular() const = 0;
  virtual const LeftOut& hidden() const = 0;
  virtual const LeftOut& unreadable() const = 0;

  // How far it has come, in bytes of the archive or files of the folder.
  virtual uint64_t done() const = 0;
  virtual uint64_t total() const = 0;
};

// Whether the name at the end of `path` is that of an archive.
bool isNamedAsArchive(kj::StringPtr path);

// A file's whole content, unpacked if it is compressed (gzip, xz, bzip2, zstd). Throws if it cannot
// be read, or is larger than `bytesMax`.
kj::Array<kj::byte> readUnpacked(kj::StringPtr path, size_t bytesMax);

}  // namespace io
