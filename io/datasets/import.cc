#include "io/datasets/import.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "configs/language/failure.h"
#include "io/datasets/idx.h"
#include "io/datasets/import_folder.h"
#include "io/datasets/sources.h"
#include "io/images/kept_image.h"
#include "io/left_out.h"
#include "io/paths.h"
#include "io/records/record_db.h"

namespace io {

namespace {

// Writes the images of the classes that are used.
class ClassWriter {
public:
  ClassWriter(const DataConfig& config, RecordWriter& writer): config(config), writer(writer) {
    auto known = classNamesOf(*config.dataset);
    for (auto& name: config.classes) {
      for (uint32_t label: kj::indices(known)) {
        if (known[label] == name) chosen.add(label);
      }
    }
    KJ_REQUIRE(chosen.size() == config.classes.size(), "unknown names of classes");
  }

  void add(uint32_t label, uint64_t id, ImageView image) {
    KJ_IF_MAYBE(own, labelOf(label)) {
      auto kept = keep(config, image);
      writer.add(*own, id, kept.encoding, kept.shape, kept.bytes);
    }
  }

private:
  kj::Maybe<uint32_t> labelOf(uint32_t label) const {
    if (config.classes.size() == 0) return label;
    for (uint32_t own: kj::indices(chosen)) {
      if (chosen[own] == label) return own;
    }
    return nullptr;
  }

  const DataConfig& config;
  RecordWriter& writer;
  kj::Vector<uint32_t> chosen;  // labels of the data set, by our labels
};

void importIdx(
    const DataConfig& config, const IdxImages& images, RecordWriter& writer, Progress& progress) {
  ClassWriter classes(config, writer);
  uint64_t count = images.labels.size();
  for (uint64_t i = 0; i < count; ++i) {
    classes.add(images.labels[i], i, images.image(i));
    if (i % RECORDS_PER_REPORT == 0) progress("importing, images", i, count);
  }
  progress("importing, images", count, count);
}

// CIFAR-10's binary version: records of a label byte and 3×32×32 pixels.
void importCifar(const DataConfig& config, kj::ArrayPtr<const kj::Array<kj::byte>> batches,
    uint64_t count, RecordWriter& writer, Progress& progress) {
  auto& shape = config.dataset->source->shape;
  size_t labels = config.dataset->source->labels;
  size_t recordBytes = labels + shape.size();
  uint64_t id = 0;
  ClassWriter classes(config, writer);
  for (auto& batch: batches) {
    KJ_REQUIRE(batch.size() % recordBytes == 0);
    for (size_t at = 0; at < batch.size(); at += recordBytes) {
      ImageView image = {shape, Layout::PLANES, batch.slice(at + labels, at + recordBytes)};
      classes.add(batch[at + labels - 1], id, image);
      if (id % RECORDS_PER_REPORT == 0) progress("importing, images", id, count);
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
    case DatasetSource::IDX: {
      auto first = parseIdx("the training files", files[0], files[1]);
      auto second = parseIdx("the validation files", files[2], files[3]);
      importIdx(config, first, training, progress);
      importIdx(config, second, validation, progress);
      return;
    }
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

// Returns the text about the origin of the databases. It has no path and no time, so that the same
// images give the same bytes.
kj::String originOf(const DataConfig& config, kj::StringPtr source) {
  auto encoding = configs::nameIn(ENCODINGS, config.encoding);
  auto resized = config.resizeShortSide == 0 ? kj::str("no") : kj::str(config.resizeShortSide);
  return kj::str(
      "source: ", printable(source), "\nencoding: ", encoding, "\nresized short side: ", resized);
}

}  // namespace

void importDataset(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets,
    kj::ArrayPtr<const RemoteFile> remote, kj::StringPtr into, Progress& progress, Warn& warn) {
  auto& kind = *config.dataset;
  bool isFolder = kind.source->format == DatasetSource::FOLDER;
  auto writerOf = [&](kj::StringPtr file) {
    auto path = kj::str(into, "/", file);
    return isFolder ? RecordWriter::resume(path, config.names.folder, progress)
                    : RecordWriter::create(path, config.names.folder);
  };
  auto training = writerOf(TRAINING_FILE), validation = writerOf(VALIDATION_FILE);
  kj::Array<kj::String> classNames;
  kj::String source;
  if (isFolder) {
    auto place = findImages(config, datasets);
    auto validationPlace = findValidationImages(config, datasets);
    downloadFiles(config, remote, into, progress);
    useDownload(place, remote, into);
    KJ_IF_MAYBE(own, validationPlace) useDownload(*own, remote, into);
    source = kj::str(baseName(place.images));
    BadImages badImages(into);
    Warn warnOfAddress = [&](kj::StringPtr text) { warn(withAddresses(text, remote, into)); };
    auto problem = kj::runCatchingExceptions([&]() {
      classNames = importFolder(config, place, validationPlace, *training, *validation, badImages,
          progress, warnOfAddress);
    });
    KJ_IF_MAYBE(e, problem) configs::fail(withAddresses(e->getDescription(), remote, into));
  } else {
    kj::Vector<kj::StringPtr> names;
    kj::Array<kj::String> paths;
    if (kind.source->isFixed()) {
      for (auto& file: kind.source->files) names.add(file.name);
      importFiles(
          config, findFiles(config, datasets, into, progress), *training, *validation, progress);
    } else {
      paths = findIdxFiles(config, datasets);
      for (auto& path: paths) names.add(baseName(path));
      importFiles(config, readIdxFiles(config, datasets), *training, *validation, progress);
    }
    classNames = classNamesOf(kind);
    if (config.classes.size() > 0) {
      classNames = KJ_MAP(name, config.classes) {
        return kj::str(name);
      };
    }
    source = kj::strArray(names, ", ");
  }
  for (auto writer: {training.get(), validation.get()}) {
    writer->finish({kind.name, classNames, originOf(config, source)});
  }
}

}  // namespace io
