// io/images/record_check.h: reads all records of a database, and summarises them.
#pragma once

#include <kj/array.h>
#include <kj/vector.h>

#include "io/progress.h"
#include "io/records/record_db.h"

namespace io {

// The content of a database.
struct RecordSums {
  uint64_t good = 0;
  uint64_t bad = 0;
  // One sentence for each of the first bad records, in order.
  kj::Vector<kj::String> problems;
  // Whether the SHA-256 of all records is the one that the database states.
  bool hasItsDigest = false;

  // The rest is about good records.
  uint64_t jpegFiles = 0;
  uint64_t payload_bytes = 0;
  uint sideMin = kj::maxValue, sideMax = 0;  // of their shorter sides, in pixels
  kj::Array<uint64_t> imagesOfClass;         // by label
};

// Reads every record, and decodes every image, on all cores. Only exceptions of `progress` are
// thrown.
RecordSums checkRecords(const RecordDb& db, Progress& progress);

}  // namespace io
