// io/record_db.h: image records in LMDB: fixed-width keys, one lookup each.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "io/data_config.h"

namespace io {

// One record as stored; `pixels` points into the map of the database and lives as long as the transaction (see
// RecordReader).
struct Record {
  uint32_t label;
  uint64_t id;                        // its number in the original order
  Encoding::Word encoding;
  ImageShape shape;                   // of the decoded image; for JPEG as its header says
  kj::ArrayPtr<const kj::byte> bytes; // C×H×W uint8, or a JPEG file
};

// A database of records 0 … count-1, opened read-only. Thread-safe; each thread reads through its own RecordReader.
// The value's layout is specified at the head of record_db.cc.
class RecordDb {
public:
  // Throws if `path` cannot be opened or is not a record database of this version; the message names the path,
  // the cause and the way out.
  static kj::Own<RecordDb> open(kj::StringPtr path);

  virtual ~RecordDb() noexcept(false) = default;
  virtual uint64_t count() const = 0;
  virtual kj::StringPtr path() const = 0;
};

// A read transaction on one thread.
class RecordReader {
public:
  static kj::Own<RecordReader> open(const RecordDb& db);
  virtual ~RecordReader() noexcept(false) = default;

  // Record `index`; checks its checksum. Valid until the next call. Throws if it is missing or damaged, naming
  // database, index and cause.
  virtual Record read(uint64_t index) = 0;
};

// Writes records in order, from 0. Nothing is visible under `path` before finish().
class RecordWriter {
public:
  static kj::Own<RecordWriter> create(kj::StringPtr path);
  virtual ~RecordWriter() noexcept(false) = default;
  virtual void add(uint32_t label, uint64_t id, Encoding::Word encoding, ImageShape shape,
      kj::ArrayPtr<const kj::byte> bytes) = 0;
  // Commits, syncs and moves the database to its place.
  virtual void finish() = 0;
};

}  // namespace io
