#include "io/images/kept_image.h"

#include <kj/thread.h>
#include <kj/vector.h>

#include <atomic>
#include <thread>

#include "configs/language/failure.h"
#include "io/images/orientation.h"
#include "io/images/png.h"

namespace io {

KeptImage keep(const DataConfig& config, ImageView image) {
  kj::Array<kj::byte> own;
  if (config.resizeShortSide > 0) {
    auto shape = resizedShape(image.shape, config.resizeShortSide);
    auto refuse = [&](kj::StringPtr limit) {
      configs::fail("would have ", sizeOf(shape), " pixels when resized by ", config.names.resize,
          "; ", limit);
    };
    if (size_t(shape.height) * shape.width > IMAGE_PIXELS_MAX) {
      refuse(kj::str("at most ", IMAGE_PIXELS_MAX, " are kept"));
    }
    if (config.encoding == Encoding::JPEG && kj::max(shape.height, shape.width) > JPEG_SIDE_MAX) {
      refuse(kj::str("a side of a JPEG file has at most ", JPEG_SIDE_MAX));
    }
    if (!(shape == image.shape)) {
      own = resize(image, shape);
      image = {shape, Layout::PLANES, own};
    }
  }
  auto encoding = config.encoding;
  if (encoding == Encoding::JPEG) {
    own = encodeJpeg(image);
    image.bytes = own;
  } else if (image.layout == Layout::PIXELS) {
    own = toPlanes(image);
    image.bytes = own;
  }
  return {encoding, image.shape, image.bytes, kj::mv(own)};
}

KeptImage keepFile(
    const DataConfig& config, kj::ArrayPtr<const kj::byte> file, JpegDecoder& decoder) {
  if (isPng(file)) {
    auto image = decodePng(file);
    return keep(config, {image.shape, Layout::PIXELS, image.pixels});
  }
  if (!isJpeg(file)) configs::fail("is neither a JPEG nor a PNG file");
  auto shape = decoder.shapeOf(file);
  // Files that stay unchanged are decoded too, because a header does not show that all pixels are
  // there.
  auto pixels = decoder.decode(file, shape);
  auto orientation = orientationOf(file);
  if (orientation != UPRIGHT) {
    auto turned = upright(pixels, shape, orientation);
    return keep(config, {shape, Layout::PIXELS, turned});
  }
  bool sameSize =
      config.resizeShortSide == 0 || kj::min(shape.height, shape.width) == config.resizeShortSide;
  if (sameSize && config.encoding == Encoding::JPEG) {
    return {Encoding::JPEG, shape, file, nullptr};
  }
  return keep(config, {shape, Layout::PIXELS, pixels});
}

ImageKeeper::ImageKeeper(const DataConfig& config)
    : config(config),
      decoders(kj::heapArray<JpegDecoder>(kj::max(1u, std::thread::hardware_concurrency()))) {}

void ImageKeeper::keep(kj::ArrayPtr<ImageFile> files) {
  std::atomic<size_t> next{0};
  auto work = [&](JpegDecoder& decoder) {
    for (size_t i; (i = next++) < files.size();) {
      auto& file = files[i];
      if (file.problem != nullptr) continue;
      file.problem =
          kj::runCatchingExceptions([&]() { file.kept = keepFile(config, file.bytes, decoder); });
    }
  };
  kj::Vector<kj::Own<kj::Thread>> others;
  for (size_t i = 1; i < kj::min(decoders.size(), files.size()); ++i) {
    others.add(kj::heap<kj::Thread>([&work, &decoder = decoders[i]]() { work(decoder); }));
  }
  work(decoders[0]);
}

}  // namespace io
