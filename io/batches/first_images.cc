#include "io/batches/first_images.h"

#include "configs/language/failure.h"
#include "io/batches/batcher.h"
#include "io/images/crop_reader.h"
#include "io/images/pixels.h"

namespace io {

kj::Array<float> firstImages(const Dataset& dataset, const DataConfig& config, uint64_t count) {
  if (count == 0) return nullptr;
  auto& db = dataset.training();
  uint64_t begin = kj::min(config.heldOut, db.count());
  uint64_t end = begin + kj::min(count, db.count() - begin);
  auto shape = dataset.batchShape();
  auto augmenter = augmenterOf(dataset, config);
  auto reader = RecordReader::open(db);
  CropReader crops(augmenter);

  auto pixels = kj::heapArray<float>((end - begin) * shape.size());
  size_t filled = 0;
  for (uint64_t index = begin; index < end; ++index) {
    kj::Maybe<Record> record;
    bool isTooSmall = false;
    auto problem = kj::runCatchingExceptions([&]() {
      auto& found = record.emplace(reader->read(index));
      isTooSmall = !augmenter.reaches(found.shape);
      if (isTooSmall) configs::fail(tooSmall(db, index, found, augmenter.shape.height));
      crops.apply(
          found, augmenter.centre(found.shape), pixels.slice(filled, filled + shape.size()));
      filled += shape.size();
    });
    KJ_IF_MAYBE(e, problem) {
      if (config.onBadRecord == BadRecordPolicy::SKIP) continue;
      KJ_IF_MAYBE(r, record) {
        if (!isTooSmall) configs::fail(badImage(db, index, *r, *e), OR_SKIP);
      }
      configs::fail(e->getDescription(), OR_SKIP);
    }
  }
  if (filled == 0)
    configs::fail("none of the first ", count, " training images in ", db.path(),
        " can be read. Check its records with `runner data verify`");
  return kj::heapArray<float>(pixels.slice(0, filled).asConst());
}

}  // namespace io
