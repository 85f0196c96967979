#include "io/batches/batch_reader.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "configs/language/random.h"
#include "io/images/crop_reader.h"
#include "io/images/pixels.h"

namespace io {

namespace {

// Per batch, only this many bad records are described. The others are counted.
constexpr size_t REPORTS_A_BATCH = 4;

}  // namespace

// Reads single images on one thread.
class BatchReader::ImageReader {
public:
  explicit ImageReader(const BatchWork& work)
      : work(work), reader(RecordReader::open(work.records)), crops(work.augmenter) {}

  // The sample will be read soon.
  void prefetch(Stream::Sample sample) {
    if (work.form != BatchForm::NUMBERS) reader->prefetch(sample.record);
  }

  // Fills one row of a batch. If the record is bad, throws a sentence that names it.
  void read(Stream::Sample sample, const View& view, BatchSlot& slot, size_t row) {
    slot.records[row] = sample.record;
    if (work.form == BatchForm::NUMBERS) {
      slot.augmentations[row] = draw(sample, view, KJ_ASSERT_NONNULL(work.stored));
      slot.labels[row] = work.labels[sample.record];
      return;
    }
    auto record = reader->read(sample.record);
    if (!work.augmenter.reaches(record.shape)) {
      configs::fail(tooSmall(work.records, sample.record, record, work.augmenter.shape.height));
    }
    auto problem = kj::runCatchingExceptions([&]() {
      // A row has the same image in all views, so whether a record is bad must not depend on the
      // part of it that a view needs.
      bool leavesOut = work.policy == BadRecordPolicy::SKIP;
      if (leavesOut && slot.plan.views > 1) crops.requireWhole(record);
      auto augmentation = draw(sample, view, record.shape);
      if (work.form == BatchForm::PIXELS) {
        crops.apply(record, augmentation, rowOf(slot.pixels, slot, row));
        return;
      }
      auto to = rowOf(slot.bytes, slot, row);
      if (work.stored != nullptr) {
        crops.copy(record, to);
      } else {
        crops.cut(record, augmentation, to);
        augmentation = {0, 0, augmentation.mirror};
      }
      slot.augmentations[row] = augmentation;
    });
    KJ_IF_MAYBE(e, problem) configs::fail(badImage(work.records, sample.record, record, *e));
    slot.labels[row] = record.label;
  }

private:
  template <typename T>
  static kj::ArrayPtr<T> rowOf(kj::Array<T>& all, const BatchSlot& slot, size_t row) {
    size_t size = all.size() / slot.labels.size();
    return all.slice(row * size, (row + 1) * size);
  }

  Augmentation draw(Stream::Sample sample, const View& view, ImageShape shape) const {
    if (work.kind == BatchWork::Kind::VALIDATION) return work.augmenter.view(view, shape);
    return work.augmenter.draw(work.seed, sample.pass, sample.record, shape);
  }

  const BatchWork& work;
  kj::Own<RecordReader> reader;
  CropReader crops;
};

BatchReader::BatchReader(const BatchWork& work): work(work), reader(kj::heap<ImageReader>(work)) {}
BatchReader::~BatchReader() noexcept(false) {}

void BatchReader::fill(BatchSlot& slot) {
  slot.images = 0;
  slot.badRecords = 0;
  slot.reports.clear();
  auto& plan = slot.plan;
  // The samples that cannot be read. Each is read and counted once, although the search for a
  // replacement may reach it before its own turn.
  kj::Vector<size_t> bad;
  auto isGood = [&](size_t index) {
    if (std::find(bad.begin(), bad.end(), index) != bad.end()) return false;
    if (readGood(slot, index)) return true;
    bad.add(index);
    return false;
  };
  for (size_t i = 0; i < plan.count && !work.stopping; ++i) {
    if (i + 1 < plan.count) reader->prefetch(plan.samples[i + 1]);
    if (isGood(i)) {
      ++slot.images;
      continue;
    }
    if (work.kind == BatchWork::Kind::VALIDATION) continue;
    bool found = false;
    for (size_t n = 1; n < plan.count && !found && !work.stopping; ++n) {
      found = isGood((i + n) % plan.count);
    }
    if (!found && !work.stopping) {
      configs::fail("step ", plan.step,
          " has no record that can be read. The first problem: ", slot.reports[0]);
    }
    ++slot.images;
  }
  // Clears the rows without an image.
  size_t size = slot.pixels.size() / slot.labels.size();
  for (auto& pixel: slot.pixels.slice(slot.images * size, slot.pixels.size())) pixel = 0;
  for (size_t row = slot.images; row < slot.labels.size(); ++row) {
    slot.labels[row] = -1;
    slot.draws[row] = 0;
    slot.records[row] = 0;
    if (work.form == BatchForm::PIXELS) continue;
    slot.augmentations[row] = {0, 0, false};
  }
}

bool BatchReader::readGood(BatchSlot& slot, size_t index) {
  auto sample = slot.plan.samples[index];
  size_t row = slot.images;
  auto problem =
      kj::runCatchingExceptions([&]() { reader->read(sample, slot.plan.view, slot, row); });
  KJ_IF_MAYBE(e, problem) {
    auto report = e->getDescription();
    if (work.policy == BadRecordPolicy::FAIL) configs::fail(report, OR_SKIP);
    // Each view reads the bad record, but only the last one reports it.
    if (!slot.plan.isLastView) return false;
    ++slot.badRecords;
    if (slot.reports.size() < REPORTS_A_BATCH) slot.reports.add(kj::str(report));
    return false;
  }
  slot.draws[row] =
      work.kind == BatchWork::Kind::TRAINING
          ? configs::Random(work.seed, configs::Purpose::DROPOUT, sample.pass, sample.record).next()
          : 0;
  return true;
}

}  // namespace io
