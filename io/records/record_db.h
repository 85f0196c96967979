// io/records/record_db.h: image records in LMDB, with one lookup per record.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "io/data_config.h"
#include "io/progress.h"

namespace io {

// The largest label that is accepted. A larger one is probably an error, and the network would need
// more than that many outputs.
constexpr uint32_t LABEL_MAX = 1000000;

// One stored record. `bytes` point into the map of the database.
struct Record {
  uint32_t label;
  uint64_t id;  // its number in the original order
  Encoding encoding;
  ImageShape shape;                    // of the decoded image; for JPEG from its header
  kj::ArrayPtr<const kj::byte> bytes;  // C×H×W uint8, or a JPEG file
};

// A database of records 0 … count-1, opened read-only. Thread-safe; each thread reads through its
// own RecordReader. The layout of the file is specified in record_format.h.
//
// A database is never changed after RecordWriter::finish(), so it is opened without locks: it may
// be on a read-only disk, and may be opened any number of times in one process. A damaged database
// is an error, whatever its bytes are. If a database is cut short while it is open, the process
// ends with exit code 1, after one line on stderr that names the database.
class RecordDb {
public:
  // Throws if `path` cannot be opened or is not a complete record database of this version. The
  // message names the path, the cause and what to do.
  static kj::Own<RecordDb> open(kj::StringPtr path);

  virtual ~RecordDb() noexcept(false) = default;
  virtual uint64_t count() const = 0;
  // The largest label plus one; 0 without records.
  virtual uint classes() const = 0;
  // The shape of all images. Null if they differ.
  virtual kj::Maybe<ImageShape> shape() const = 0;
  // The SHA-256 over all values in order, 32 bytes. Two databases with the same digest hold the
  // same records.
  virtual kj::ArrayPtr<const kj::byte> digest() const = 0;
  virtual kj::StringPtr path() const = 0;
  // The data set that the records were imported from, a name in DATASETS. Null if the database does
  // not name it, for example if an older program wrote it. Lives as long as this object.
  virtual kj::Maybe<kj::StringPtr> dataset() const = 0;
  // The names of the classes, by label. Empty if the database does not have them. Lives as long as
  // this object.
  virtual kj::ArrayPtr<const kj::String> classNames() const = 0;
  // The origin of the records, in lines `what: value`. Empty if the database does not have it.
  // Lives as long as this object.
  virtual kj::StringPtr origin() const = 0;
  // Returns the path of record `index`'s image in the imported data. Null if records do not come
  // from single files, and in databases of older programs.
  virtual kj::Maybe<kj::String> source(uint64_t index) const = 0;
};

// A read transaction on one thread. The database must outlive it.
class RecordReader {
public:
  static kj::Own<RecordReader> open(const RecordDb& db);
  virtual ~RecordReader() noexcept(false) = default;

  // Reads record `index` and checks its checksum. Valid until the next call. If the record is
  // missing or damaged, throws badRecord()'s sentence with advice.
  virtual Record read(uint64_t index) = 0;
  // Begins to fetch record `index` from memory, while the caller does something else. Call it if
  // one of the next two calls of read() is for this record. Reports no error: read() does.
  virtual void prefetch(uint64_t index) = 0;
};

// Whether the SHA-256 of all records, as they are now, is db.digest(). Only exceptions of
// `progress` are thrown.
bool hasItsDigest(const RecordDb& db, Progress& progress);

// Returns the name of record `index` for messages: "record 42 (cat/7.jpg) of PATH". If the database
// does not know the image's file but `id` is known, the name contains "image 46 of the source,
// counted from 0".
kj::String nameOfRecord(const RecordDb& db, uint64_t index, kj::Maybe<uint64_t> id);

// Returns the sentence about a record that cannot be used: nameOfRecord(), " is bad: " and the
// cause.
kj::String badRecord(
    const RecordDb& db, uint64_t index, kj::Maybe<uint64_t> id, kj::StringPtr cause);

// Facts in a database about its records as a whole. Each may be empty.
struct RecordsOrigin {
  kj::StringPtr dataset;  // what RecordDb::dataset() will return
  // One name per label, or none at all. Line breaks in a name become spaces.
  kj::ArrayPtr<const kj::String> classNames;
  kj::StringPtr facts;  // what RecordDb::origin() will return
};

// Writes records in order, from 0. Before finish(), nothing is visible under `path`. Throws with
// path and cause if the disk is full. Messages advise to set `setting` to another folder.
class RecordWriter {
public:
  // Without finish(), the destructor removes the file.
  static kj::Own<RecordWriter> create(
      kj::StringPtr path, kj::StringPtr setting = "RUNNER_CACHE"_kj);
  // Continues the database that an earlier process has left, whether or not that process has called
  // finish(). Checks its records first. Begins a new database if there is none, or if a record is
  // damaged. Without finish(), the destructor leaves the file for the next call. At most one
  // process may use a `path` at a time, and the machine must not have lost its power since the
  // earlier process.
  static kj::Own<RecordWriter> resume(
      kj::StringPtr path, kj::StringPtr setting, Progress& progress);
  virtual ~RecordWriter() noexcept(false) = default;

  // Whether resume() has found records that takeKept() has not taken yet. All of them must be taken
  // before the first add().
  virtual bool hasKept() const = 0;
  // Takes the next of these records, which then counts as added. Returns false if all are taken.
  // Throws if that record has another label or number.
  virtual bool takeKept(uint32_t label, uint64_t id, kj::StringPtr source) = 0;
  // `source` is the path of the image's file in the imported data. Either all records have one, or
  // none has.
  virtual void add(uint32_t label, uint64_t id, Encoding encoding, ImageShape shape,
      kj::ArrayPtr<const kj::byte> bytes, kj::StringPtr source = nullptr) = 0;
  // Commits and syncs the database, and moves it to its path.
  virtual void finish(const RecordsOrigin& origin = {}) = 0;
  // How many records were added.
  virtual uint64_t count() const = 0;
};

}  // namespace io
