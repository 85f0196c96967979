// io/datasets/archives.h: the files in a folder, in an archive or in a RecordIO file, one after
// another.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/memory.h>
#include <kj/string.h>

#include <cstdint>

#include "io/left_out.h"

namespace io {

// Iterates over the regular files of a folder, of an archive, or of a RecordIO file (see
// record_io.h). In a folder, files are sorted by path, sub-folders are included, and links are
// followed. An archive may have any format that libarchive reads, and keeps its own order. Its hard
// links come last, each with the content of the file that it links to. Hidden files and folders are
// skipped. If an archive has several entries of one name, all of them are returned, the last one
// last. If one of these entries is a hard link, it and all later ones are returned with the content
// of the last entry. For one thread.
class Members {
public:
  // Throws with the cause if `path` is neither a folder nor such a file.
  static kj::Own<Members> open(kj::StringPtr path);
  virtual ~Members() noexcept(false) = default;

  // Returns the path of the next file, or null after the last one. The path is relative, with `/`
  // between folders and without a leading `./`. It is valid until the next call. If the archive
  // says that a name is UTF-8, returns composed() of the name, and otherwise its raw bytes. Throws
  // if the archive is damaged or ends early. Throws if a zip or tar has two files or folders to
  // which composed() gives one name. For other formats, this cannot be detected.
  virtual kj::Maybe<kj::StringPtr> next() = 0;
  // Returns the label in the source itself of the file that next() returned last. Only RecordIO
  // files have labels.
  virtual kj::Maybe<uint32_t> label() const { return nullptr; }
  // Returns the content of the file that next() returned last. Call it at most once per file.
  // Throws if the file cannot be read, or is larger than `bytesMax`. If its size is known, throws
  // before taking memory. The text begins with a verb ("has more than …"), so that the caller can
  // put the file's name before it. next() may be called after an exception. It throws if the
  // archive itself cannot be read further.
  virtual kj::Array<kj::byte> read(size_t bytesMax) = 0;

  // The entries that next() has skipped so far. notRegular(): entries that are neither regular
  // files nor folders, with their kinds. unreadable(): folders that cannot be read, and entries of
  // archives whose names cannot be read, with the reason. hidden(): hidden files and folders, but
  // not the contents of hidden folders (see hiddenPartOf()). empty(): folders with nothing in them;
  // complete after the last file.
  virtual const LeftOut& notRegular() const = 0;
  virtual const LeftOut& hidden() const = 0;
  virtual const LeftOut& unreadable() const = 0;
  virtual const LeftOut& empty() const = 0;

  // The progress, in bytes of the archive or in files of the folder.
  virtual uint64_t done() const = 0;
  virtual uint64_t total() const = 0;
};

// Whether the name of `path` ends like that of an image that can be imported, in any case.
bool isNamedAsImage(kj::StringPtr path);
// Whether `path` ends like the name of an archive.
bool isNamedAsArchive(kj::StringPtr path);
// Returns `path` without such an ending.
kj::String withoutArchiveEnding(kj::StringPtr path);

// Returns a file's whole content, unpacked if it is compressed (gzip, xz, bzip2, zstd). Throws if
// it cannot be read or is larger than `bytesMax`. `wayOut` is the advice about a damaged file (for
// a gzip file, only if it cannot be unpacked); empty: get it again.
kj::Array<kj::byte> readUnpacked(kj::StringPtr path, size_t bytesMax, kj::StringPtr wayOut = "");

}  // namespace io
