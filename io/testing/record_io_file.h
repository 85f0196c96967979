// io/testing/record_io_file.h: writes MXNet's RecordIO files for tests.
#pragma once

#include <kj/array.h>
#include <kj/vector.h>

#include <cstdint>

namespace io {

// An image of a RecordIO file.
struct RecordIoImage {
  float label;
  kj::ArrayPtr<const kj::byte> file;
  // Labels after the header, in place of `label`.
  kj::ArrayPtr<const float> labels = nullptr;
};

// Returns a file of these images, as MXNet's writer makes it (dmlc-core's recordio.cc).
kj::Array<kj::byte> recordIoOf(kj::ArrayPtr<const RecordIoImage> images);

}  // namespace io
