// io/records/lmdb_file.h: reads LMDB files safely, even damaged ones.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

using kj::uint;

// An LMDB file (data version 1, that of LMDB 0.9) whose unnamed database has keys of 8 bytes in
// big-endian order. Thread-safe.
//
// LMDB itself trusts its files: one changed byte in a page can end the process by SIGFPE, SIGBUS,
// SIGSEGV or an assertion. This class checks every number of the file before it uses it.
//
// The file is mapped. Nobody may write to it meanwhile. If it becomes shorter, or its disk fails, a
// read ends the process as mapFile() describes.
class LmdbFile {
public:
  // Reads and checks only the two meta pages, so that a large file opens as fast as a small one.
  // The description of an exception is a clause without the path ("page 0 of the file is damaged").
  // `lost` is the sentence that mapFile() prints if it ends the process.
  LmdbFile(kj::StringPtr path, kj::StringPtr lost);
  KJ_DISALLOW_COPY(LmdbFile);

  uint64_t size_bytes() const { return file.size(); }
  // Returns the value of `key`, which lives as long as this object. Null if there is none. Throws
  // if a page on the way is damaged. The description is a clause without the path.
  kj::Maybe<kj::ArrayPtr<const kj::byte>> find(uint64_t key) const;

  // find() in two steps, for callers that do something else while the value is fetched from memory.
  // The place of a key's value.
  struct Place {
    bool isInLeaf;
    kj::ArrayPtr<const kj::byte> inLeaf;
    uint64_t overflowPage = 0;  // the page in which it begins otherwise
    size_t size = 0;
  };
  kj::Maybe<Place> placeOf(uint64_t key) const;
  // Asks the processor to fetch the first bytes at `place`. Does not check them.
  void prefetch(const Place& place) const;
  kj::ArrayPtr<const kj::byte> valueAt(const Place& place) const;

private:
  // The pages of the database.
  struct Tree {
    uint64_t root;  // page of the root, if depth > 0
    uint64_t lastPage;
    uint64_t transaction;
    uint16_t depth;  // levels of pages
  };

  // Reads and checks meta page `number`, 0 or 1.
  Tree readMeta(uint number) const;
  // Returns page `number`, which must be of `kind`.
  kj::ArrayPtr<const kj::byte> pageOf(uint16_t kind, uint64_t number) const;
  // Returns a value of `size` bytes that begins in overflow page `number`.
  kj::ArrayPtr<const kj::byte> overflowOf(uint64_t number, size_t size) const;
  // Throws if the file ends before `offset` + `size`.
  kj::ArrayPtr<const kj::byte> slice(uint64_t offset, size_t size) const;

  kj::Array<const kj::byte> file;
  size_t page_bytes;
  Tree tree;
};

}  // namespace io
