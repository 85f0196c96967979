#include "io/images/png.h"

#include <kj/debug.h>
#include <png.h>
#include <setjmp.h>

#include <cstring>

#include "configs/language/failure.h"

namespace io {

namespace {

// Deflate packs at most 1,032 bytes into one, and the smallest pixels have one bit. A larger image
// is refused before memory is allocated, so that a small damaged file cannot take much.
constexpr size_t PIXELS_PER_BYTE = 8 * 1032;
// Chunks without pixels, such as texts, are refused if they are larger.
constexpr size_t CHUNK_BYTES_MAX = size_t(8) << 20;

// libpng reports errors by a function that must not return. It jumps back to where call() has
// called libpng.
class Decoder {
public:
  explicit Decoder(kj::ArrayPtr<const kj::byte> file): rest(file) {
    png = png_create_read_struct(
        PNG_LIBPNG_VER_STRING, this,
        [](png_structp png, png_const_charp text) {
          auto& decoder = *static_cast<Decoder*>(png_get_error_ptr(png));
          strncpy(decoder.message, text, sizeof(decoder.message) - 1);
          longjmp(decoder.escape, 1);
        },
        // Warnings are about chunks that do not change pixels.
        [](png_structp, png_const_charp) {});
    KJ_REQUIRE(png != nullptr, "libpng cannot start");
    info = png_create_info_struct(png);
    KJ_REQUIRE(info != nullptr, "libpng cannot start");
    png_set_read_fn(png, this, [](png_structp png, png_bytep to, size_t size) {
      auto& rest = static_cast<Decoder*>(png_get_io_ptr(png))->rest;
      if (size > rest.size()) png_error(png, "the file ends early");
      memcpy(to, rest.begin(), size);
      rest = rest.slice(size, rest.size());
    });
    png_set_user_limits(png, IMAGE_PIXELS_MAX, IMAGE_PIXELS_MAX);
    png_set_chunk_malloc_max(png, CHUNK_BYTES_MAX);
  }
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
  KJ_DISALLOW_COPY(Decoder);

  // Reads everything before the pixels.
  ImageShape readHeader() {
    call([&]() { png_read_info(png, info); });
    return {3, png_get_image_height(png, info), png_get_image_width(png, info)};
  }

  // Writes the pixels of `height` rows to `pixels`.
  void readPixels(kj::ArrayPtr<kj::byte> pixels, uint height, size_t row_bytes) {
    call([&]() {
      png_set_expand(png);
      png_set_scale_16(png);
      png_set_strip_alpha(png);
      png_set_gray_to_rgb(png);
      int passes = png_set_interlace_handling(png);
      png_read_update_info(png, info);
      if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "its pixels are not RGB");
      // png_read_image() needs a pointer per row. In a narrow image these take more memory than its
      // pixels.
      for (int pass = 0; pass < passes; ++pass) {
        for (uint y = 0; y < height; ++y) {
          png_read_row(png, pixels.begin() + y * row_bytes, nullptr);
        }
      }
      png_read_end(png, nullptr);
    });
  }

private:
  // libpng may jump out of `work`, so it must not have objects with destructors.
  template <typename Work>
  void call(Work&& work) {
    if (setjmp(escape) == 0) {
      work();
    } else {
      configs::fail("cannot be decoded: ", kj::StringPtr(message));
    }
  }

  kj::ArrayPtr<const kj::byte> rest;
  png_structp png = nullptr;
  png_infop info = nullptr;
  jmp_buf escape;
  char message[200] = {};
};

}  // namespace

bool isPng(kj::ArrayPtr<const kj::byte> file) {
  constexpr size_t SIGNATURE_BYTES = 8;
  return file.size() >= SIGNATURE_BYTES && png_sig_cmp(file.begin(), 0, SIGNATURE_BYTES) == 0;
}

PngImage decodePng(kj::ArrayPtr<const kj::byte> file) {
  if (!isPng(file)) configs::fail("is not a PNG file");
  Decoder decoder(file);
  auto shape = decoder.readHeader();
  size_t pixels = size_t(shape.height) * shape.width;
  if (pixels > IMAGE_PIXELS_MAX) {
    configs::fail("has ", sizeOf(shape), " pixels, but at most ", IMAGE_PIXELS_MAX, " are allowed");
  }
  if (pixels / PIXELS_PER_BYTE > file.size()) {
    configs::fail(
        "has ", file.size(), " bytes, which are too few for its ", sizeOf(shape), " pixels");
  }
  PngImage image{shape, kj::heapArray<kj::byte>(shape.size())};
  size_t row_bytes = size_t(shape.width) * shape.channels;
  decoder.readPixels(image.pixels, shape.height, row_bytes);
  return image;
}

}  // namespace io
