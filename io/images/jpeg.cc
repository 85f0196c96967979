#include "io/images/jpeg.h"

#include <kj/debug.h>
// jpeglib.h uses FILE and size_t, and does not include their headers.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "configs/language/failure.h"

namespace io {

namespace {

// Quality 95 with 4:4:4 keeps re-encoded CIFAR-10 images within a few grey levels of the original.
constexpr int QUALITY = 95;

// Without a limit, a small progressive file of many thousand scans decodes for minutes.
constexpr int SCANS_MAX = 500;

// Files with four inks store them inverted: 255 is no ink. This is Adobe's convention, the only one
// that occurs in practice.
void inksToRgb(kj::ArrayPtr<const kj::byte> inks, kj::ArrayPtr<kj::byte> rgb, uint stride) {
  for (size_t i = 0; i < inks.size() / 4; ++i) {
    for (uint c = 0; c < 3; ++c) {
      rgb[stride * i + c] = (inks[4 * i + c] * inks[4 * i + 3] + 127) / 255;
    }
  }
}

// A Huffman code of at least one bit stands for each block of 8×8 pixels. A larger image is refused
// before memory is allocated, so that a small damaged file cannot take much. Arithmetic coding,
// which nobody uses, could pack a larger image into as many bytes.
constexpr size_t PIXELS_PER_BYTE = 8 * 64;
constexpr size_t PIXELS_MIN = 1 << 20;

// libjpeg reports errors by a function that must not return. It jumps back to where call() has
// called libjpeg. A warning counts as an error, because the pixels after it are invented.
struct Errors {
  jpeg_error_mgr manager;  // comes first: libjpeg knows its address
  jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
  bool endsAtWarnings = true;

  Errors() {
    jpeg_std_error(&manager);
    manager.error_exit = [](j_common_ptr info) {
      auto& errors = *reinterpret_cast<Errors*>(info->err);
      info->err->format_message(info, errors.message);
      longjmp(errors.escape, 1);
    };
    manager.emit_message = [](j_common_ptr info, int level) {
      bool isWarning = level < 0;  // the others report progress
      auto& errors = *reinterpret_cast<Errors*>(info->err);
      if (isWarning && errors.endsAtWarnings) info->err->error_exit(info);
    };
  }

  // Calls `work`. libjpeg may jump out of it, so it must not have objects with destructors. Returns
  // whether it completed. Otherwise `message` is the cause.
  template <typename Work>
  bool call(Work&& work) {
    if (setjmp(escape) != 0) return false;
    work();
    return true;
  }
};

// One file.
class Decompression {
public:
  explicit Decompression(kj::ArrayPtr<const kj::byte> file) {
    info.err = &errors.manager;
    KJ_REQUIRE(errors.call([&]() { jpeg_create_decompress(&info); }), "libjpeg-turbo cannot start",
        errors.message);
    progress.progress_monitor = [](j_common_ptr info) {
      auto& decompress = *reinterpret_cast<j_decompress_ptr>(info);
      if (decompress.input_scan_number <= SCANS_MAX) return;
      auto& errors = *reinterpret_cast<Errors*>(info->err);
      snprintf(errors.message, sizeof(errors.message), "it has more than %d scans", SCANS_MAX);
      longjmp(errors.escape, 1);
    };
    info.progress = &progress;
    KJ_ON_SCOPE_FAILURE(jpeg_destroy_decompress(&info));
    readHeader(file);
  }
  ~Decompression() { jpeg_destroy_decompress(&info); }
  KJ_DISALLOW_COPY(Decompression);

  ImageShape shape() const { return {3, info.image_height, info.image_width}; }

  // Throws unless the file has the size of `shape`.
  void requireSize(ImageShape shape) {
    if (info.image_height == shape.height && info.image_width == shape.width) return;
    configs::fail(
        "has ", sizeOf(this->shape()), " pixels, not ", sizeOf(shape), " as its record says");
  }

  // Whether it has four inks. libjpeg-turbo converts every other colour space to RGB.
  bool hasInks() const {
    return info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  }

  void start(J_COLOR_SPACE space, uint shrink = 1) {
    info.out_color_space = space;
    info.scale_num = 1;
    info.scale_denom = shrink;
    run([&]() { jpeg_start_decompress(&info); });
  }

  // Leaves out the columns outside of these as far as possible: widens them to those that will be
  // decoded.
  void crop(uint& left, uint& width) {
    run([&]() { jpeg_crop_scanline(&info, &left, &width); });
  }
  void skip(uint rows) {
    if (rows > 0) run([&]() { jpeg_skip_scanlines(&info, rows); });
  }
  void readRow(kj::byte* row) {
    run([&]() { jpeg_read_scanlines(&info, &row, 1); });
  }
  // Throws if something after the last row is wrong.
  void finish() {
    run([&]() { jpeg_finish_decompress(&info); });
  }

  uint height() const { return info.output_height; }
  uint width() const { return info.output_width; }

private:
  template <typename Work>
  void run(Work&& work) {
    if (!errors.call(kj::fwd<Work>(work))) {
      configs::fail("cannot be decoded: ", kj::StringPtr(errors.message));
    }
  }

  void readHeader(kj::ArrayPtr<const kj::byte> file) {
    if (!isJpeg(file)) configs::fail("is not a JPEG file");
    int found = JPEG_SUSPENDED;
    errors.endsAtWarnings = false;
    bool isRead = errors.call([&]() {
      jpeg_mem_src(&info, file.begin(), file.size());
      found = jpeg_read_header(&info, FALSE);
    });
    errors.endsAtWarnings = true;
    if (!isRead) configs::fail("has a damaged JPEG header: ", kj::StringPtr(errors.message));
    // libjpeg mistakes a file that ends before its sizes for a list of tables.
    if (found != JPEG_HEADER_OK) configs::fail("ends before its image begins");
    size_t pixels = size_t(info.image_width) * info.image_height;
    if (pixels > IMAGE_PIXELS_MAX) {
      configs::fail(
          "has ", sizeOf(shape()), " pixels, but at most ", IMAGE_PIXELS_MAX, " are allowed");
    }
    if (pixels > PIXELS_MIN + PIXELS_PER_BYTE * file.size()) {
      configs::fail(
          "has ", file.size(), " bytes, which are too few for its ", sizeOf(shape()), " pixels");
    }
  }

  Errors errors;
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct info{};
};

// Returns the first `needed` bytes of `bytes`, and replaces it by a larger array if necessary.
kj::ArrayPtr<kj::byte> roomIn(kj::Array<kj::byte>& bytes, size_t needed) {
  if (bytes.size() < needed) bytes = kj::heapArray<kj::byte>(needed);
  return bytes.slice(0, needed);
}

}  // namespace

bool isJpeg(kj::ArrayPtr<const kj::byte> file) {
  // The marker "start of image".
  return file.size() >= 2 && file[0] == 0xff && file[1] == 0xd8;
}

ImageShape JpegDecoder::shapeOf(kj::ArrayPtr<const kj::byte> file) {
  return Decompression(file).shape();
}

kj::ArrayPtr<const kj::byte> JpegDecoder::decode(
    kj::ArrayPtr<const kj::byte> file, ImageShape shape) {
  KJ_REQUIRE(shape.channels == 1 || shape.channels == 3, shape.channels);
  Decompression image(file);
  image.requireSize(shape);
  bool hasInks = image.hasInks();
  KJ_REQUIRE(!hasInks || shape.channels == 3, "a CMYK JPEG file cannot be converted to grey");
  image.start(hasInks ? JCS_CMYK : shape.channels == 1 ? JCS_GRAYSCALE : JCS_RGB);
  size_t row_bytes = size_t(shape.width) * shape.channels;
  size_t ink_bytes = hasInks ? 4 * size_t(shape.width) : 0;
  auto room = roomIn(pixels, shape.size() + ink_bytes);
  auto out = room.slice(0, shape.size());
  for (uint y = 0; y < shape.height; ++y) {
    auto row = out.slice(y * row_bytes, (y + 1) * row_bytes);
    if (hasInks) {
      auto inks = room.slice(shape.size(), room.size());
      image.readRow(inks.begin());
      inksToRgb(inks, row, 3);
    } else {
      image.readRow(row.begin());
    }
  }
  image.finish();
  return out;
}

void JpegDecoder::decodeRegion(kj::ArrayPtr<const kj::byte> file, ImageShape shape, uint shrink,
    Region region, kj::FunctionParam<void(kj::ArrayPtr<const kj::byte> row)> take) {
  KJ_REQUIRE(shape.channels == 1 || shape.channels == 3, shape.channels);
  Decompression image(file);
  image.requireSize(shape);
  bool hasInks = image.hasInks();
  KJ_REQUIRE(!hasInks || shape.channels == 3, "a CMYK JPEG file cannot be converted to grey");
  image.start(hasInks ? JCS_CMYK : shape.channels == 1 ? JCS_GRAYSCALE : JCS_EXT_RGBX, shrink);
  KJ_REQUIRE(region.height > 0 && region.width > 0 &&
                 region.top + region.height <= image.height() &&
                 region.left + region.width <= image.width(),
      region.top, region.left, region.height, region.width, image.height(), image.width());
  // At the edge of the decoded region, libjpeg-turbo repeats the colours of the last pixel instead
  // of using those beside it.
  constexpr uint MARGIN = 2;
  uint left = region.left > MARGIN ? region.left - MARGIN : 0;
  uint width = kj::min(image.width(), region.left + region.width + MARGIN) - left;
  if (width < image.width()) image.crop(left, width);
  size_t pixel_bytes = shape.channels == 1 ? 1 : 4;
  // libjpeg-turbo writes an aligned row past the caches, and reading it would take longer than
  // decoding it.
  constexpr size_t UNALIGNED = 4;
  auto room = roomIn(pixels, UNALIGNED + width * pixel_bytes);
  room = room.slice(UNALIGNED, room.size());
  auto row = room.slice(
      (region.left - left) * pixel_bytes, (region.left - left + region.width) * pixel_bytes);
  image.skip(region.top);
  for (uint y = 0; y < region.height; ++y) {
    image.readRow(room.begin());
    if (hasInks) inksToRgb(row, row, 4);
    take(row);
  }
}

kj::Array<kj::byte> encodeJpeg(ImageView image) {
  auto& shape = image.shape;
  KJ_REQUIRE(shape.channels == 1 || shape.channels == 3, shape.channels);
  KJ_REQUIRE(image.bytes.size() == shape.size());
  auto pixels = kj::heapArray<kj::byte>(shape.size());
  size_t plane = size_t(shape.height) * shape.width;
  for (size_t i = 0; i < plane; ++i) {
    for (uint c = 0; c < shape.channels; ++c) {
      size_t from = image.layout == Layout::PLANES ? c * plane + i : i * shape.channels + c;
      pixels[i * shape.channels + c] = image.bytes[from];
    }
  }
  Errors errors;
  jpeg_compress_struct info{};
  info.err = &errors.manager;
  unsigned char* file = nullptr;
  unsigned long size = 0;
  KJ_DEFER({
    jpeg_destroy_compress(&info);
    ::free(file);
  });
  bool isGrey = shape.channels == 1;
  bool isDone = errors.call([&]() {
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &file, &size);
    info.image_width = shape.width;
    info.image_height = shape.height;
    info.input_components = shape.channels;
    info.in_color_space = isGrey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, QUALITY, TRUE);
    info.dct_method = JDCT_IFAST;
    // 4:4:4. The default is 4:2:0.
    info.comp_info[0].h_samp_factor = 1;
    info.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
      JSAMPROW row = pixels.begin() + size_t(info.next_scanline) * shape.width * shape.channels;
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
  });
  if (!isDone) {
    configs::fail("cannot be encoded as a JPEG file: ", kj::StringPtr(errors.message));
  }
  return kj::heapArray<kj::byte>(file, size);
}

}  // namespace io
