// io/datasets/data_copy.h: copies of packed records, from the cache of one machine to that of
// another.
#pragma once

#include <kj/array.h>
#include <kj/io.h>
#include <kj/string.h>

#include "io/data_config.h"

namespace io {

// A file of packed records, by its name in their folder.
struct PackedFile {
  kj::String name;
  uint64_t size_bytes;
};

// Files of a folder, one after another as one sequence of bytes. They are open as long as it lives.
class PackedFiles {
public:
  kj::ArrayPtr<const PackedFile> list() const { return files; }
  uint64_t size_bytes() const;
  // Fills `to` with the bytes from `offset` on. `to` must not reach beyond the end. Throws if a
  // file has become shorter.
  void read(uint64_t offset, kj::ArrayPtr<kj::byte> to) const;

protected:
  PackedFiles() = default;
  KJ_DISALLOW_COPY(PackedFiles);

  kj::Array<PackedFile> files;
  kj::Vector<kj::AutoCloseFd> opened;  // one for each file
};

// The packed records of a data set, with their mean image if they have one.
class PackedData: public PackedFiles {
public:
  // Opens them as openDataset() does.
  explicit PackedData(const DataConfig& config);

  kj::String recordsSha256;  // see recordsSha256() in datasets.h
  kj::String name;           // the name of their folder, which need not be in the cache
};

// A copy of another machine's packed records in this machine's cache. The folder of the copy is
// named after the records, and exists only when the copy is complete. Until then, the received
// bytes are in a folder beside it. Another process may fetch the rest.
class DataCopy: public PackedFiles {
public:
  // The arguments come from another machine, as its PackedData has them. Throws if they are not
  // those of packed records.
  DataCopy(kj::StringPtr recordsSha256, kj::StringPtr name, kj::Array<PackedFile> files);

  // Returns the folder of the copy, or of the same records that this machine has imported itself.
  // Null if it has neither of them. Checks the sizes of the copy, and the digests in its databases.
  // Each record also has a checksum, which is checked when the record is read.
  kj::Maybe<kj::String> find() const;

  // Takes the lock of the copy, which this object then keeps. Returns false if another process has
  // it: that process may complete the copy. Throws if the cache cannot be written.
  bool takeLock();
  // Opens an incomplete copy. This and the functions below need the lock.
  void open();
  // Returns how many bytes the incomplete copy has.
  uint64_t present_bytes() const { return present; }
  // Appends bytes. Throws if `offset` is not the end of the incomplete copy, or if the bytes do not
  // belong to the files. Also throws if the disk is full.
  void append(uint64_t offset, kj::ArrayPtr<const kj::byte> bytes);
  // Moves the files into their place. The caller must have checked the checksum of all bytes.
  // Throws if the records do not match the name.
  void finish();
  // Removes the incomplete copy. The copy begins again.
  void clear();

private:
  bool hasRecords(kj::StringPtr folder) const;
  // Returns where the incomplete copy has this file.
  kj::String pathOf(size_t file) const;

  const kj::String sha256;
  const kj::String imported;  // where this machine may have imported the same records
  const kj::String path;
  const kj::String part;  // the folder of a copy that is not complete
  kj::Maybe<kj::AutoCloseFd> lock;
  uint64_t present = 0;
  uint64_t unsynced_bytes = 0;
};

}  // namespace io
