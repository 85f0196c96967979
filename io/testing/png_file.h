// io/testing/png_file.h: writes PNG files for tests.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

namespace io {

// The pixel format of a PNG file (PNG, section 11.2.2).
struct PngKind {
  int bits;    // per channel
  int colour;  // PNG_COLOR_TYPE_…
  bool interlaced = false;
};

// Returns a file of this kind with rows of `row_bytes` bytes each. A palette has three colours:
// red, green and blue. The first of them is transparent.
kj::Array<kj::byte> pngOf(
    PngKind kind, kj::uint width, kj::uint height, kj::ArrayPtr<const kj::byte> rows);

}  // namespace io
