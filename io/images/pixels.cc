#include "io/images/pixels.h"

#include <kj/debug.h>

#include "configs/language/failure.h"

namespace io {

ImageView pixelsOf(const Record& record, JpegDecoder& decoder) {
  switch (record.encoding) {
    case Encoding::RAW:
      return {record.shape, Layout::PLANES, record.bytes};
    case Encoding::JPEG:
      return {record.shape, Layout::PIXELS, decoder.decode(record.bytes, record.shape)};
  }
  KJ_UNREACHABLE;
}

kj::String badImage(
    const RecordDb& db, uint64_t index, const Record& record, const kj::Exception& problem) {
  return kj::str(badRecord(db, index, record.id, kj::str("its image ", problem.getDescription())),
      ". Repair or remove that image in the source of the data");
}

kj::String tooSmall(const RecordDb& db, uint64_t index, const Record& record, uint crop) {
  return kj::str("data.augment.crop = ", crop, " is larger than the image of ",
      nameOfRecord(db, index, record.id), ", which has ", sizeOf(record.shape),
      " pixels. Make the crop smaller, or the images larger with data.resize_short_side");
}

kj::Array<int32_t> readImages(const RecordDb& db, kj::ArrayPtr<kj::byte> buffer,
    kj::FunctionParam<void(uint64_t first, kj::ArrayPtr<const kj::byte> images)> take) {
  auto labels = kj::heapArrayBuilder<int32_t>(db.count());
  auto reader = RecordReader::open(db);
  JpegDecoder decoder;
  uint64_t first = 0;
  size_t filled = 0;
  for (uint64_t i = 0; i < db.count(); ++i) {
    auto record = reader->read(i);
    size_t size = record.shape.size();
    if (filled + size > buffer.size()) {
      take(first, buffer.slice(0, filled));
      first = i;
      filled = 0;
    }
    auto problem = kj::runCatchingExceptions(
        [&]() { toPlanes(pixelsOf(record, decoder), buffer.slice(filled, filled + size)); });
    KJ_IF_MAYBE(e, problem) configs::fail(badImage(db, i, record, *e));
    filled += size;
    labels.add(record.label);
  }
  if (filled > 0) take(first, buffer.slice(0, filled));
  return labels.finish();
}

namespace {

void add(ImageView image, kj::ArrayPtr<uint64_t> sums) {
  size_t plane = size_t(image.shape.height) * image.shape.width;
  for (uint c = 0; c < image.shape.channels; ++c) {
    auto pixels = image.bytes.begin() + (image.layout == Layout::PLANES ? c * plane : c);
    size_t stride = image.layout == Layout::PLANES ? 1 : image.shape.channels;
    auto to = sums.begin() + c * plane;
    for (size_t i = 0; i < plane; ++i) to[i] += pixels[i * stride];
  }
}

}  // namespace

kj::Array<float> meanImageOf(
    const RecordDb& db, BadRecordPolicy policy, Progress& progress, kj::StringPtr skip) {
  if (db.count() == 0) configs::fail("there is no mean image of ", db.path(), ": it is empty");
  ImageShape shape = {0, 0, 0};
  KJ_IF_MAYBE(s, db.shape()) {
    shape = *s;
  } else {
    configs::fail("there is no mean image of ", db.path(),
        ": its images differ in shape. Give data.augment.mean as one number per channel");
  }
  kj::Array<uint64_t> sums;  // of the first image that can be read, and of all after it
  uint64_t images = 0;
  auto reader = RecordReader::open(db);
  JpegDecoder decoder;
  for (uint64_t i = 0; i < db.count(); ++i) {
    kj::Maybe<Record> record;
    auto problem = kj::runCatchingExceptions([&]() {
      record = reader->read(i);
      auto image = pixelsOf(KJ_ASSERT_NONNULL(record), decoder);
      if (sums == nullptr) {
        sums = kj::heapArray<uint64_t>(shape.size());
        for (auto& sum: sums) sum = 0;
      }
      add(image, sums);
      ++images;
    });
    KJ_IF_MAYBE(e, problem) {
      if (policy == BadRecordPolicy::FAIL) {
        KJ_IF_MAYBE(r, record) configs::fail(badImage(db, i, *r, *e), ", or ", skip);
        configs::fail(e->getDescription(), ", or ", skip);
      }
    }
    if (i % RECORDS_PER_REPORT == 0) progress("computing the mean image, images", i, db.count());
  }
  if (images == 0)
    configs::fail("there is no mean image of ", db.path(), ": no record can be read");
  progress("computing the mean image, images", db.count(), db.count());
  auto mean = kj::heapArrayBuilder<float>(shape.size());
  for (auto sum: sums) mean.add(static_cast<float>(double(sum) / double(images)));
  return mean.finish();
}

}  // namespace io
