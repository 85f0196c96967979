#include "runner/roles/batches.h"

#include <kj/debug.h>

#include "configs/language/failure.h"
#include "io/images/pixels.h"

namespace runner {

nn::RawImages rawImagesOf(const io::Augmenter& augmenter) {
  auto& stored = augmenter.stored;
  return {.channels = stored.channels,
      .height = stored.height,
      .width = stored.width,
      .reflects = augmenter.padMode == io::Padding::REFLECT,
      .hasGrey = augmenter.padMode == io::Padding::VALUE,
      .grey = augmenter.padValue,
      .meanImage = augmenter.meanImage.size() > 0 ? augmenter.meanImage.begin() : nullptr,
      .means = augmenter.means.begin(),
      .factors = augmenter.factors.begin()};
}

uint64_t kept_bytes(const io::DataConfig& config, const io::DatasetFacts& facts) {
  if (config.cache != io::DataCache::DEVICE) return 0;
  uint64_t validation = config.validatesOnHeldOut() ? 0 : facts.validationRecords;
  return (facts.trainingRecords + validation) * facts.shape.size();
}

Batches::Batches(nn::Program& program, const io::Dataset& dataset, const io::DataConfig& config,
    uint64_t seed, uint workers, uint rank, uint64_t firstStep, kj::FunctionParam<void()> kept)
    : program(program), rows(kj::heapArray<nn::RawRow>(config.batchSize)) {
  takeRaw(dataset, config, kept);
  if (keeps && !config.validatesOnHeldOut()) firstOfValidation = dataset.training().count();
  training = io::Batcher::training(
      dataset, config, seed, workers, rank, firstStep, newForm(trainingLabels));
  validation = io::Batcher::validation(dataset, config, workers, rank,
      newForm(config.validatesOnHeldOut() ? trainingLabels : validationLabels));
}

void Batches::takeRaw(
    const io::Dataset& dataset, const io::DataConfig& config, kj::FunctionParam<void()>& kept) {
  bool wants = config.cache == io::DataCache::DEVICE;
  if (wants && dataset.storedShape() == nullptr) {
    configs::fail(
        "images that differ in size cannot be kept on a device: set "
        "data.cache = \"none\", or give them one size at import");
  }
  auto augmenter = io::augmenterOf(dataset, config);
  if (io::canReadBytes(dataset, augmenter)) {
    bool validates = !config.validatesOnHeldOut();
    uint64_t count = 0;
    if (wants) count = dataset.training().count() + (validates ? dataset.validation().count() : 0);
    raw = program.takeRaw(rawImagesOf(augmenter), count);
    if (wants && raw != nullptr) keep(dataset, augmenter.stored, validates, kept);
  }
  if (wants && raw == nullptr) {
    configs::fail(
        "data.cache = \"device\" is for GPUs, but this worker does not compute on a GPU. "
        "Set data.cache = \"none\", or name GPUs in cluster.devices");
  }
}

void Batches::keep(const io::Dataset& dataset, io::ImageShape shape, bool validates,
    kj::FunctionParam<void()>& kept) {
  constexpr uint64_t BUFFER_BYTES = 16 << 20;
  auto& to = KJ_ASSERT_NONNULL(raw);
  keeps = true;
  auto buffer = to.allocate(kj::max(1, BUFFER_BYTES / shape.size()) * shape.size());
  auto keepAll = [&](const io::RecordDb& db, uint64_t begin) {
    return io::readImages(db, buffer, [&](uint64_t first, auto images) {
      to.keep(begin + first, images);
      kept();
    });
  };
  trainingLabels = keepAll(dataset.training(), 0);
  if (validates) validationLabels = keepAll(dataset.validation(), trainingLabels.size());
}

io::BatchForm Batches::newForm(kj::ArrayPtr<const int32_t> labels) {
  KJ_IF_MAYBE(own, raw) {
    if (keeps) return {.word = io::BatchForm::NUMBERS, .labels = labels};
    kj::Function<kj::Array<kj::byte>(size_t)> allocate = [own](size_t bytes) {
      return own->allocate(bytes);
    };
    return {.word = io::BatchForm::BYTES, .allocate = kj::mv(allocate)};
  }
  return {};
}

kj::Maybe<const io::Batch&> Batches::read(io::Batcher& from, uint64_t first) {
  // From here on, the readers may overwrite the previous batch.
  KJ_IF_MAYBE(own, raw) own->awaitBatch();
  last = from.next();
  firstNumber = first;
  return last;
}

const io::Batch& Batches::readTraining() {
  return KJ_ASSERT_NONNULL(read(*training, 0), "the training stream has no end");
}

kj::Maybe<const io::Batch&> Batches::readValidation() {
  return read(*validation, firstOfValidation);
}

void Batches::divideBy(kj::Own<const io::Division> division, uint64_t step) {
  // The readers may overwrite the batch that was read last.
  KJ_IF_MAYBE(own, raw) own->awaitBatch();
  last = nullptr;
  training->divideBy(kj::mv(division), step);
}

void Batches::set() {
  auto& batch = KJ_REQUIRE_NONNULL(last);
  KJ_IF_MAYBE(own, raw) {
    for (auto n: kj::indices(rows)) {
      auto& drawn = batch.augmentations[n];
      rows[n] = {firstNumber + batch.records[n], drawn.top, drawn.left, drawn.mirror};
    }
    own->setBatch(
        {.images = batch.bytes, .rows = rows, .labels = batch.labels, .draws = batch.draws});
  } else {
    program.setBatch(batch.pixels, batch.labels, batch.draws);
  }
}

}  // namespace runner
