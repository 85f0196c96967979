#include "io/images/kept_image.h"

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

KeptImage keepFile(const DataConfig& config, kj::ArrayPtr<const kj::byte> file, ImageTools& tools) {
  if (isPng(file)) {
    auto image = decodePng(file);
    auto orientation = orientationOf(file);
    if (orientation != UPRIGHT) image.pixels = upright(image.pixels, image.shape, orientation);
    return keep(config, {image.shape, Layout::PIXELS, image.pixels});
  }
  if (!isJpeg(file)) configs::fail("is neither a JPEG nor a PNG file");
  auto shape = tools.decoder.shapeOf(file);
  auto orientation = orientationOf(file);
  bool hasSize =
      config.resizeShortSide == 0 || kj::min(shape.height, shape.width) == config.resizeShortSide;
  bool isKept = hasSize && orientation == UPRIGHT && config.encoding == Encoding::JPEG;
  // A header does not show that all pixels are there.
  if (isKept && tools.checker.isSurelyWhole(file)) return {Encoding::JPEG, shape, file, nullptr};
  auto pixels = tools.decoder.decode(file, shape);
  if (isKept) return {Encoding::JPEG, shape, file, nullptr};
  if (orientation == UPRIGHT) return keep(config, {shape, Layout::PIXELS, pixels});
  auto turned = upright(pixels, shape, orientation);
  return keep(config, {shape, Layout::PIXELS, turned});
}

namespace {

size_t ownBytesOf(const ImageFile& file) {
  KJ_IF_MAYBE(kept, file.kept) return kept->own.size();
  return 0;
}

}  // namespace

ImageKeeper::ImageKeeper(const DataConfig& config): config(config) {
  uint cores = kj::max(1u, std::thread::hardware_concurrency());
  filesMax = 64 * cores;
  // If a thread cannot start, the others end.
  KJ_ON_SCOPE_FAILURE(jobs.lockExclusive()->isOver = true);
  for (uint i = 0; i < cores; ++i) {
    threads.add(kj::heap<kj::Thread>([this]() { work(); }));
  }
}

ImageKeeper::~ImageKeeper() noexcept(false) {
  jobs.lockExclusive()->isOver = true;
  threads.clear();
}

void ImageKeeper::add(ImageFile file) {
  ++count;
  bytes += file.bytes.size();
  jobs.lockExclusive()->all.push_back({kj::mv(file)});
}

kj::Maybe<ImageFile> ImageKeeper::take() {
  if (count == 0) return nullptr;
  auto file = jobs.when([](const Jobs& jobs) { return jobs.all.front().isDone; },
      [](Jobs& jobs) {
        auto file = kj::mv(jobs.all.front().file);
        jobs.all.pop_front();
        --jobs.begun;
        jobs.keptBytes -= ownBytesOf(file);
        return file;
      });
  --count;
  bytes -= file.bytes.size();
  return file;
}

void ImageKeeper::work() {
  ImageTools tools;
  // Jobs begin in their order. If there is a result, the file that take() waits for has begun.
  auto canBegin = [](const Jobs& jobs) {
    return jobs.isOver || (jobs.begun < jobs.all.size() && jobs.keptBytes < BYTES_MAX);
  };
  auto begin = [](Jobs& jobs) { return jobs.isOver ? nullptr : &jobs.all[jobs.begun++]; };
  while (auto job = jobs.when(canBegin, begin)) {
    auto& file = job->file;
    if (file.problem == nullptr) {
      file.problem =
          kj::runCatchingExceptions([&]() { file.kept = keepFile(config, file.bytes, tools); });
    }
    auto locked = jobs.lockExclusive();
    locked->keptBytes += ownBytesOf(file);
    job->isDone = true;
  }
}

}  // namespace io
