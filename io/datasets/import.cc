#include "io/datasets/import.h"

#include <kj/debug.h>

#include <cstring>

#include "io/datasets/import_folder.h"
#include "io/datasets/sources.h"
#include "io/images/kept_image.h"
#include "io/left_out.h"
#include "io/paths.h"
#include "io/records/record_db.h"

namespace io {

namespace {

constexpr uint64_t RECORDS_A_REPORT = 1000;

void add(RecordWriter& writer, uint32_t label, uint64_t id, const KeptImage& kept) {
  writer.add(label, id, kept.encoding, kept.shape, kept.bytes);
}

uint32_t bigEndian(kj::ArrayPtr<const kj::byte> bytes, size_t at) {
  uint32_t number;
  memcpy(&number, bytes.begin() + at, sizeof(number));
  return __builtin_bswap32(number);
}

// The IDX format: a magic number, the size of each dimension, then the bytes. The checksums already
// guarantee the content. These checks explain the format, and find a wrong row of the table.
void importIdx(const DataConfig& config, kj::ArrayPtr<const kj::byte> images,
    kj::ArrayPtr<const kj::byte> labels, uint64_t count, RecordWriter& writer, Progress& progress) {
  constexpr size_t IMAGE_HEADER_BYTES = 16;
  constexpr size_t LABEL_HEADER_BYTES = 8;
  auto& shape = config.dataset->source->shape;
  KJ_REQUIRE(images.size() == IMAGE_HEADER_BYTES + count * shape.size() &&
             bigEndian(images, 0) == 2051 && bigEndian(images, 4) == count &&
             bigEndian(images, 8) == shape.height && bigEndian(images, 12) == shape.width);
  KJ_REQUIRE(labels.size() == LABEL_HEADER_BYTES + count && bigEndian(labels, 0) == 2049 &&
             bigEndian(labels, 4) == count);
  for (uint64_t i = 0; i < count; ++i) {
    auto from = IMAGE_HEADER_BYTES + i * shape.size();
    ImageView image = {shape, Layout::PLANES, images.slice(from, from + shape.size())};
    add(writer, labels[LABEL_HEADER_BYTES + i], i, keep(config, image));
    if (i % RECORDS_A_REPORT == 0) progress("importing, images", i, count);
  }
  progress("importing, images", count, count);
}

// CIFAR-10's binary version: records of a label byte and 3×32×32 pixels.
void importCifar(const DataConfig& config, kj::ArrayPtr<const kj::Array<kj::byte>> batches,
    uint64_t count, RecordWriter& writer, Progress& progress) {
  auto& shape = config.dataset->source->shape;
  size_t recordBytes = 1 + shape.size();
  uint64_t id = 0;
  for (auto& batch: batches) {
    KJ_REQUIRE(batch.size() % recordBytes == 0);
    for (size_t at = 0; at < batch.size(); at += recordBytes) {
      ImageView image = {shape, Layout::PLANES, batch.slice(at + 1, at + recordBytes)};
      add(writer, batch[at], id, keep(config, image));
      if (id % RECORDS_A_REPORT == 0) progress("importing, images", id, count);
      ++id;
    }
  }
  KJ_REQUIRE(id == count);
  progress("importing, images", count, count);
}

void importFiles(const DataConfig& config, kj::ArrayPtr<const kj::Array<kj::byte>> files,
    RecordWriter& training, RecordWriter& validation, Progress& progress) {
  auto& source = *config.dataset->source;
  switch (source.format) {
    case DatasetSource::IDX:
      importIdx(config, files[0], files[1], source.trainingRecords, training, progress);
      importIdx(config, files[2], files[3], source.validationRecords, validation, progress);
      return;
    case DatasetSource::CIFAR:
      importCifar(
          config, files.slice(0, files.size() - 1), source.trainingRecords, training, progress);
      importCifar(config, files.slice(files.size() - 1, files.size()), source.validationRecords,
          validation, progress);
      return;
    case DatasetSource::FOLDER:
      break;
  }
  KJ_UNREACHABLE;
}

// Returns what the databases say of their origin. No path and no time: the same images give the
// same bytes.
kj::String originOf(const DataConfig& config, kj::StringPtr source) {
  auto encoding = configs::nameIn(ENCODINGS, config.encoding);
  auto resized = config.resizeShortSide == 0 ? kj::str("no") : kj::str(config.resizeShortSide);
  return kj::str(
      "source: ", printable(source), "\nencoding: ", encoding, "\nresized short side: ", resized);
}

}  // namespace

void importDataset(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets, kj::StringPtr into,
    Progress& progress, Warn& warn) {
  auto training = RecordWriter::create(kj::str(into, "/", TRAINING_FILE), config.names.folder);
  auto validation = RecordWriter::create(kj::str(into, "/", VALIDATION_FILE), config.names.folder);
  auto& kind = *config.dataset;
  kj::Array<kj::String> classNames;
  kj::String source;
  if (kind.source->format == DatasetSource::FOLDER) {
    auto place = findImages(config, datasets);
    auto validationPlace = findValidationImages(config, datasets);
    source = kj::str(baseName(place.images));
    classNames =
        importFolder(config, place, validationPlace, *training, *validation, progress, warn);
  } else {
    auto files = findFiles(config, datasets, into, progress);
    importFiles(config, files, *training, *validation, progress);
    classNames = classNamesOf(kind);
    auto names = KJ_MAP(file, kind.source->files) {
      return kj::StringPtr(file.name);
    };
    source = kj::strArray(names, ", ");
  }
  for (auto writer: {training.get(), validation.get()}) {
    writer->finish({kind.name, classNames, originOf(config, source)});
  }
}

}  // namespace io
