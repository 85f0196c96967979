// io/records/record_format.h: the layout of a record database, for the code that writes and reads
// it.
//
// The file format, version 1. An LMDB file without folder (MDB_NOSUBDIR). Keys are 8 bytes,
// big-endian, so that their order is that of the numbers:
//
//   0 … count-1           the records
//   2^63 + record         the path of the record's image in its source, as its bytes; there for
//                         image folders, but not in databases of older programs
//   2^64-4                where the records come from: lines `what: value`, as text; not in
//                         databases of older programs
//   2^64-3                the names of the classes, by label: one per line, as text; there if they
//                         are known, but not in databases of older programs
//   2^64-2                the name of the data set that all records are from, as its bytes; not in
//                         databases of older programs
//   2^64-1                the description
//
// Numbers inside values are little-endian.
//
//   record                                     description
//    0  u32  magic "RREC"                       0  u32  magic "RDES"
//    4  u16  version                            4  u32  version
//    6  u8   encoding: 0 raw, 1 JPEG            8  u64  count
//    7  u8   channels                          16  u32  classes: the largest label + 1
//    8  u32  label                             20  u32  channels  \.
//   12  u32  height                            24  u32  height     } all 0 if images differ
//   16  u32  width                             28  u32  width     /
//   20  u32  size of the payload               32  32 bytes: SHA-256 over the values of all
//   24  u64  id                                    records, in order
//   32  u32  CRC-32 of bytes 0 … 31 and of     64  u32  CRC-32 of bytes 0 … 63
//            the payload                       68  u32  0
//   36  u32  0                                 72  end
//   40  payload: C×H×W bytes, or a JPEG file
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <libdeflate.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace io {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

constexpr uint32_t RECORD_VERSION = 1;
constexpr uint64_t PATH_KEYS = uint64_t(1) << 63;
constexpr uint64_t ORIGIN_KEY = std::numeric_limits<uint64_t>::max() - 3;
constexpr uint64_t CLASSES_KEY = std::numeric_limits<uint64_t>::max() - 2;
constexpr uint64_t DATASET_KEY = std::numeric_limits<uint64_t>::max() - 1;
constexpr uint64_t DESCRIPTION_KEY = std::numeric_limits<uint64_t>::max();

// The parts of the layout above, byte by byte.
struct RecordHeader {
  char magic[4];
  uint16_t version;
  uint8_t encoding;
  uint8_t channels;
  uint32_t label;
  uint32_t height;
  uint32_t width;
  uint32_t size;
  uint64_t id;
  uint32_t crc;
  uint32_t zero;
};
static_assert(sizeof(RecordHeader) == 40 && offsetof(RecordHeader, crc) == 32);

// The parts of the value of DESCRIPTION_KEY.
struct Description {
  char magic[4];
  uint32_t version;
  uint64_t count;
  uint32_t classes;
  uint32_t channels;
  uint32_t height;
  uint32_t width;
  kj::byte digest[32];
  uint32_t crc;
  uint32_t zero;
};
static_assert(sizeof(Description) == 72 && offsetof(Description, crc) == 64);

inline uint32_t checksum(const RecordHeader& header, kj::ArrayPtr<const kj::byte> payload) {
  auto crc = libdeflate_crc32(0, &header, offsetof(RecordHeader, crc));
  return libdeflate_crc32(crc, payload.begin(), payload.size());
}

inline uint32_t checksum(const Description& description) {
  return libdeflate_crc32(0, &description, offsetof(Description, crc));
}

}  // namespace io
