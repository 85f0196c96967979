// io/lmdb_file.h: reads LMDB files, damaged ones too. LMDB itself trusts its files: one changed
// byte in a page can end the process by SIGFPE, SIGBUS, SIGSEGV or an assertion. Here every number
// of the file is checked before it is used, and pages are read instead of mapped, so that a file
// that shrinks and a disk that fails are errors, not signals.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/io.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

using kj::uint;

// An LMDB file (data version 1, that of LMDB 0.9) opened for reading, whose unnamed database has
// keys of 8 bytes in big-endian order. Nobody may write to it meanwhile. Thread-safe.
class LmdbFile {
public:
  // Reads and checks the two meta pages, nothing else, so that a large file opens as fast as a
  // small one. Throws a clause without the path ("its first page is damaged").
  explicit LmdbFile(kj::StringPtr path);
  KJ_DISALLOW_COPY(LmdbFile);

private:
  friend class LmdbReader;

  // Which pages hold the database.
  struct Tree {
    uint64_t root;  // page of the root, if depth > 0
    uint64_t lastPage;
    uint64_t transaction;
    uint16_t depth;  // levels of pages
  };

  // Checks meta page `number`, 0 or 1.
  Tree readMeta(uint number) const;
  // Reads all of `bytes` from `offset` on. Throws if that reaches behind the end of the file.
  void read(uint64_t offset, kj::ArrayPtr<kj::byte> bytes) const;

  kj::AutoCloseFd fd;
  uint64_t file_bytes;
  size_t page_bytes;
  Tree tree;
};

// Looks values up, on one thread. It keeps pages of the tree, 2 MiB at most of those that LMDB
// writes on a PC. The file must outlive it.
class LmdbReader {
public:
  explicit LmdbReader(const LmdbFile& file);
  KJ_DISALLOW_COPY(LmdbReader);

  // The value of `key`, valid until the next call; null if there is none. Throws a clause without
  // the path if a page on the way is damaged or cannot be read.
  kj::Maybe<kj::ArrayPtr<const kj::byte>> find(uint64_t key);

private:
  // A page that was read and checked; page 0 is never in the tree.
  struct Page {
    uint64_t number = 0;
    kj::Array<kj::byte> bytes;
  };
  // Places for pages, each for those whose numbers have one remainder: a call of the system per
  // page would cost more than the rest of a look-up.
  using Cache = kj::Array<Page>;

  // Page `number`, which must be of `kind`.
  const Page& load(Cache& cache, uint16_t kind, uint64_t number);
  kj::ArrayPtr<const kj::byte> readOverflow(uint64_t number, size_t size);

  const LmdbFile& file;
  Cache branches;
  Cache leaves;
  kj::Array<kj::byte> overflow;
};

}  // namespace io
