#include "io/testing/png_file.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <png.h>

namespace io {

kj::Array<kj::byte> pngOf(
    PngKind kind, kj::uint width, kj::uint height, kj::ArrayPtr<const kj::byte> rows) {
  kj::Vector<kj::byte> file;
  auto png = png_create_write_struct(
      PNG_LIBPNG_VER_STRING, nullptr,
      [](png_structp, png_const_charp text) { KJ_FAIL_REQUIRE("libpng cannot write", text); },
      nullptr);
  auto info = png_create_info_struct(png);
  KJ_DEFER(png_destroy_write_struct(&png, &info));
  png_set_write_fn(
      png, &file,
      [](png_structp png, png_bytep bytes, size_t size) {
        static_cast<kj::Vector<kj::byte>*>(png_get_io_ptr(png))->addAll(bytes, bytes + size);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, width, height, kind.bits, kind.colour,
      kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
      PNG_FILTER_TYPE_DEFAULT);
  if (kind.colour == PNG_COLOR_TYPE_PALETTE) {
    png_color colours[] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}};
    png_set_PLTE(png, info, colours, kj::size(colours));
    png_byte transparent = 0;
    png_set_tRNS(png, info, &transparent, 1, nullptr);
  }
  png_write_info(png, info);
  png_set_interlace_handling(png);
  size_t row_bytes = png_get_rowbytes(png, info);
  KJ_REQUIRE(rows.size() == row_bytes * height, rows.size(), row_bytes);
  auto pointers = kj::heapArray<png_bytep>(height);
  for (auto y: kj::indices(pointers)) {
    pointers[y] = const_cast<kj::byte*>(rows.begin() + y * row_bytes);
  }
  png_write_image(png, pointers.begin());
  png_write_end(png, info);
  return file.releaseAsArray();
}

}  // namespace io
