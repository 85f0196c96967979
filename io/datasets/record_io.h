// io/datasets/record_io.h: the images in an MXNet RecordIO file (.rec), as im2rec writes it.
#pragma once

#include "io/datasets/archives.h"

namespace io {

// The format (dmlc-core's recordio.h and MXNet's image_recordio.h): a file is a sequence of parts,
// each at a multiple of 4 bytes.
//
//   u32  magic 0xced7230a
//   u32  bits 29 to 31: 0 a whole record; 1, 2 and 3 the first, a middle and the last part of one.
//        bits 0 to 28: the size of the part in bytes
//   the bytes of the part, padded with zeros
//
// A record is divided where it has the magic number at a multiple of 4 bytes. These 4 bytes are not
// in the file. An image's record is
//
//   u32  how many labels follow this header; 0: the next field is the label
//   f32  label
//   u64  number of the image; u64 not used
//   f32  for each label after the header
//   the image file
//
// All numbers are little-endian.

// Whether the file at `path` begins as a RecordIO file.
bool isRecordIo(kj::StringPtr path);

// Returns the images of such a file in their order. They are called "0.jpg", "1.jpg", …, or end in
// ".png" or ".bin" if they are PNG files or something else. Throws if the file cannot be opened.
// next() throws at a damaged place, and at a record with several labels or with one that is not a
// whole number.
kj::Own<Members> openRecordIo(kj::StringPtr path);

}  // namespace io
