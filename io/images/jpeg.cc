#include "io/images/jpeg.h"

#include <kj/debug.h>
#include <turbojpeg.h>

#include "configs/language/failure.h"

namespace io {

namespace {

// Quality 95 with 4:4:4 keeps re-encoded CIFAR-10 images within a few grey levels of the original.
constexpr int QUALITY = 95;

kj::StringPtr causeOf(void* handle) {
  return tjGetErrorStr2(handle);
}

// libjpeg-turbo converts every other colour space to RGB.
bool isFourInks(int colorspace) {
  return colorspace == TJCS_CMYK || colorspace == TJCS_YCCK;
}

// Files with four inks store them inverted: 255 is no ink. This is Adobe's convention, the only one
// that occurs in practice.
void inksToRgb(kj::ArrayPtr<const kj::byte> inks, kj::ArrayPtr<kj::byte> rgb) {
  for (size_t i = 0; i < rgb.size() / 3; ++i) {
    for (uint c = 0; c < 3; ++c) {
      rgb[3 * i + c] = (inks[4 * i + c] * inks[4 * i + 3] + 127) / 255;
    }
  }
}

// A Huffman code of at least one bit stands for each block of 8×8 pixels. Memory for a larger image
// is refused before it is taken, so that a small damaged file takes little. Arithmetic coding,
// which nobody uses, could pack a larger image into as many bytes.
constexpr size_t PIXELS_PER_BYTE = 8 * 64;
constexpr size_t PIXELS_MIN = 1 << 20;

struct Header {
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colorspace = 0;
};

Header readHeader(void* handle, kj::ArrayPtr<const kj::byte> file) {
  Header h;
  if (tjDecompressHeader3(handle, file.begin(), file.size(), &h.width, &h.height, &h.subsampling,
          &h.colorspace) != 0) {
    // Every JPEG file begins with the marker "start of image".
    bool begins = file.size() >= 2 && file[0] == 0xff && file[1] == 0xd8;
    if (!begins) configs::fail("is not a JPEG file");
    configs::fail("has a damaged JPEG header: ", causeOf(handle));
  }
  // libjpeg takes a file that ends before its sizes for a list of tables.
  if (h.width <= 0 || h.height <= 0) configs::fail("ends before its image begins");
  if (size_t(h.width) * size_t(h.height) > IMAGE_PIXELS_MAX) {
    configs::fail(
        "has ", h.width, "×", h.height, " pixels, but at most ", IMAGE_PIXELS_MAX, " are allowed");
  }
  if (size_t(h.width) * size_t(h.height) > PIXELS_MIN + PIXELS_PER_BYTE * file.size()) {
    configs::fail("has ", file.size(), " bytes, which are too few for its ", h.width, "×", h.height,
        " pixels");
  }
  return h;
}

void* newHandle() {
  auto handle = tjInitDecompress();
  KJ_REQUIRE(handle != nullptr, "libjpeg-turbo cannot start", causeOf(nullptr));
  return handle;
}

}  // namespace

JpegDecoder::JpegDecoder(): handle(newHandle()) {}

JpegDecoder::~JpegDecoder() noexcept(false) {
  tjDestroy(handle);
}

void JpegDecoder::replaceHandle() {
  auto fresh = newHandle();
  tjDestroy(handle);
  handle = fresh;
}

ImageShape JpegDecoder::shapeOf(kj::ArrayPtr<const kj::byte> file) {
  KJ_ON_SCOPE_FAILURE(replaceHandle());
  auto header = readHeader(handle, file);
  return {3, static_cast<uint>(header.height), static_cast<uint>(header.width)};
}

kj::ArrayPtr<const kj::byte> JpegDecoder::decode(
    kj::ArrayPtr<const kj::byte> file, ImageShape shape) {
  KJ_ON_SCOPE_FAILURE(replaceHandle());
  KJ_REQUIRE(shape.channels == 1 || shape.channels == 3, shape.channels);
  auto header = readHeader(handle, file);
  if (uint(header.height) != shape.height || uint(header.width) != shape.width) {
    configs::fail("has ", header.width, "×", header.height, " pixels, not ", sizeOf(shape),
        " as its record says");
  }
  bool inks = isFourInks(header.colorspace);
  KJ_REQUIRE(!inks || shape.channels == 3, "a CMYK JPEG file cannot be converted to grey");
  size_t plane = size_t(shape.height) * shape.width;
  size_t needed = shape.size() + (inks ? 4 * plane : 0);
  if (pixels.size() < needed) pixels = kj::heapArray<kj::byte>(needed);
  auto out = pixels.slice(0, shape.size());
  auto decoded = inks ? pixels.slice(shape.size(), needed) : out;
  int format = inks ? TJPF_CMYK : shape.channels == 1 ? TJPF_GRAY : TJPF_RGB;
  // Without the limit, a small progressive file of many thousand scans decodes for minutes.
  if (tjDecompress2(handle, file.begin(), file.size(), decoded.begin(), header.width, 0,
          header.height, format, TJFLAG_LIMITSCANS) != 0) {
    configs::fail("cannot be decoded: ", causeOf(handle));
  }
  if (inks) inksToRgb(decoded, out);
  return out;
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
  auto handle = tjInitCompress();
  KJ_REQUIRE(handle != nullptr, "libjpeg-turbo cannot start", causeOf(nullptr));
  KJ_DEFER(tjDestroy(handle));
  unsigned char* file = nullptr;
  KJ_DEFER(tjFree(file));
  unsigned long size = 0;
  bool grey = shape.channels == 1;
  if (tjCompress2(handle, pixels.begin(), shape.width, 0, shape.height, grey ? TJPF_GRAY : TJPF_RGB,
          &file, &size, grey ? TJSAMP_GRAY : TJSAMP_444, QUALITY, 0) != 0) {
    configs::fail("cannot be encoded as a JPEG file: ", causeOf(handle));
  }
  return kj::heapArray<kj::byte>(file, size);
}

}  // namespace io
