#include "io/import.h"

#include <kj/debug.h>
#include <kj/map.h>
#include <kj/vector.h>

#include <algorithm>
#include <cstring>

#include "configs/language/failure.h"
#include "io/archives.h"
#include "io/jpeg.h"
#include "io/paths.h"
#include "io/record_db.h"
#include "io/sources.h"

namespace io {

namespace {

constexpr uint64_t RECORDS_A_REPORT = 1000;
// An image folder's share for validation: images HELD_OUT-1, 2·HELD_OUT-1, …
constexpr uint64_t HELD_OUT = 10;
// Labels of image folders: larger ones are a mistake in the file, and would make a network of that
// many outputs.
constexpr uint64_t LABEL_MAX = 1000000;
constexpr size_t IMAGE_FILE_BYTES_MAX = size_t(1) << 28;
constexpr size_t LABEL_FILE_BYTES_MAX = size_t(1) << 30;

// An image in the form its record keeps.
struct Kept {
  Encoding::Word encoding;
  ImageShape shape;
  kj::ArrayPtr<const kj::byte> bytes;  // somebody else's, or `own`
  kj::Array<kj::byte> own;
};

Kept keep(const DataConfig& config, ImageView image) {
  kj::Array<kj::byte> own;
  if (config.resizeShortSide > 0) {
    auto shape = resizedShape(image.shape, config.resizeShortSide);
    if (size_t(shape.height) * shape.width > IMAGE_PIXELS_MAX) {
      configs::fail("resized, an image would have ", shape.height, "×", shape.width, " pixels");
    }
    if (!(shape == image.shape)) {
      own = resize(image, shape);
      image = {shape, Layout::PLANES, own};
    }
  }
  auto encoding = config.encoding->word;
  if (encoding == Encoding::JPEG) {
    own = encodeJpeg(image);
    image.bytes = own;
  } else if (image.layout == Layout::PIXELS) {
    own = toPlanes(image);
    image.bytes = own;
  }
  return {encoding, image.shape, image.bytes, kj::mv(own)};
}

// A JPEG file stays as it is where it may.
Kept keepJpeg(const DataConfig& config, kj::ArrayPtr<const kj::byte> file, JpegDecoder& decoder) {
  auto shape = decoder.shapeOf(file);
  bool sameSize =
      config.resizeShortSide == 0 || kj::min(shape.height, shape.width) == config.resizeShortSide;
  if (sameSize && config.encoding->word == Encoding::JPEG) {
    return {Encoding::JPEG, shape, file, nullptr};
  }
  return keep(config, {shape, Layout::PIXELS, decoder.decode(file, shape)});
}

void add(RecordWriter& writer, uint32_t label, uint64_t id, const Kept& kept) {
  writer.add(label, id, kept.encoding, kept.shape, kept.bytes);
}

uint32_t bigEndian(kj::ArrayPtr<const kj::byte> bytes, size_t at) {
  uint32_t number;
  memcpy(&number, bytes.begin() + at, sizeof(number));
  return __builtin_bswap32(number);
}

// The idx format: a magic number, the size of each dimension, then the bytes. What the files hold
// is known from their checksums; these checks are for the reader, and for a table row that is
// wrong.
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

using Labels = kj::HashMap<kj::String, uint32_t>;

bool isJpegName(kj::StringPtr path) {
  auto name = kj::str(baseName(path));
  for (auto& c: name) {
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  }
  return name.endsWith(".jpeg") || name.endsWith(".jpg");
}

kj::Maybe<uint64_t> parseLabel(kj::ArrayPtr<const char> digits) {
  uint64_t label = 0;
  if (digits.size() == 0 || digits.size() > 9) return nullptr;
  for (char c: digits) {
    if (c < '0' || c > '9') return nullptr;
    label = label * 10 + (c - '0');
  }
  return label;
}

// `path<TAB>label`, more columns at will; lines that begin with '#' are left out.
Labels readLabels(kj::StringPtr path) {
  auto bytes = readFile(path, LABEL_FILE_BYTES_MAX);
  auto text = bytes.asChars();
  Labels labels;
  uint line = 0;
  for (size_t at = 0; at < text.size();) {
    ++line;
    size_t end = std::find(text.begin() + at, text.end(), '\n') - text.begin();
    auto row = text.slice(at, end);
    at = end + 1;
    if (row.size() > 0 && row.back() == '\r') row = row.slice(0, row.size() - 1);
    if (row.size() == 0 || row[0] == '#') continue;
    size_t tab = std::find(row.begin(), row.end(), '\t') - row.begin();
    auto rest = row.slice(kj::min(tab + 1, row.size()), row.size());
    auto label =
        parseLabel(rest.slice(0, std::find(rest.begin(), rest.end(), '\t') - rest.begin()));
    KJ_IF_MAYBE(l, label) {
      if (*l > LABEL_MAX) {
        configs::fail(path, ":", line, ": the label ", *l, " is above ", LABEL_MAX);
      }
      auto& entry = labels.upsert(
          kj::heapString(row.slice(0, tab)), uint32_t(*l), [](uint32_t&, uint32_t&&) {});
      if (entry.value != *l) {
        configs::fail(path, ":", line, ": ", entry.key, " has two labels");
      }
    } else {
      configs::fail(path, ":", line, ": a line is a path, a tab and a label from 0 to ", LABEL_MAX);
    }
  }
  return labels;
}

// Labels by folder: the folders that hold images, sorted, are classes 0, 1, ….
Labels labelsByFolder(kj::StringPtr images, Progress& progress) {
  kj::Vector<kj::String> paths;
  auto members = Members::open(images);
  auto what = kj::str("listing ", baseName(images));
  for (;;) {
    KJ_IF_MAYBE(path, members->next()) {
      if (isJpegName(*path)) paths.add(kj::str(*path));
    } else {
      break;
    }
    progress(what, members->done(), members->total());
  }
  kj::Vector<kj::String> folders;
  for (auto& path: paths) folders.add(folderName(path));
  std::sort(folders.begin(), folders.end());
  auto last = std::unique(folders.begin(), folders.end());
  if (last - folders.begin() == 1) {
    configs::fail("all images of ", images,
        " lie in one folder, which makes one class: put those of each class into a sub-folder of "
        "its own, or their labels into labels.tsv beside them");
  }
  Labels labels;
  for (auto& path: paths) {
    auto place = std::lower_bound(folders.begin(), last, folderName(path));
    labels.upsert(kj::mv(path), uint32_t(place - folders.begin()), [](uint32_t&, uint32_t&&) {});
  }
  return labels;
}

void importFolder(const DataConfig& config, const ImagePlace& place, RecordWriter& training,
    RecordWriter& validation, Progress& progress) {
  Labels labels;
  KJ_IF_MAYBE(path, place.labels) {
    labels = readLabels(*path);
  } else {
    labels = labelsByFolder(place.images, progress);
  }
  JpegDecoder decoder;
  uint64_t id = 0;
  uint64_t found = 0;
  auto members = Members::open(place.images);
  for (;;) {
    kj::StringPtr path;
    KJ_IF_MAYBE(p, members->next()) {
      path = *p;
    } else {
      break;
    }
    if (!isJpegName(path)) continue;
    uint32_t label = 0;
    KJ_IF_MAYBE(l, labels.find(path)) {
      label = *l;
    } else {
      configs::fail(path, " of ", place.images, " has no label in ",
          KJ_ASSERT_NONNULL(place.labels), ": give it one, or take it away");
    }
    ++found;
    auto file = members->read(IMAGE_FILE_BYTES_MAX);
    kj::Maybe<Kept> kept;
    auto problem = kj::runCatchingExceptions([&]() { kept = keepJpeg(config, file, decoder); });
    KJ_IF_MAYBE(e, problem) {
      if (config.onBadRecord->word == BadRecordPolicy::FAIL) {
        configs::fail("cannot import ", path, " of ", place.images, ": ", e->getDescription(),
            "; repair or remove it, or set data.on_bad_record = \"skip\"");
      }
      KJ_LOG(WARNING, "an image is left out", path, e->getDescription());
      continue;
    }
    auto& writer = id % HELD_OUT == HELD_OUT - 1 ? validation : training;
    add(writer, label, id, KJ_ASSERT_NONNULL(kept));
    ++id;
    if (id % 16 == 0) progress("importing, images", found, labels.size());
  }
  progress("importing, images", found, labels.size());
  if (id == 0) {
    configs::fail("there is no image in ", place.images,
        ": set data.source to a folder or an archive of JPEG files, whose names end in .jpeg or "
        ".jpg");
  }
  if (found < labels.size()) {
    configs::fail(
        place.images, " has ", found, " of the ", labels.size(), " images that its labels name");
  }
}

}  // namespace

void importDataset(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets, kj::StringPtr into,
    Progress& progress) {
  auto training = RecordWriter::create(kj::str(into, "/", TRAINING_FILE));
  auto validation = RecordWriter::create(kj::str(into, "/", VALIDATION_FILE));
  kj::Maybe<kj::StringPtr> source = nullptr;
  KJ_IF_MAYBE(s, config.source) source = kj::StringPtr(*s);
  if (config.dataset->source->format == DatasetSource::FOLDER) {
    importFolder(
        config, findImages(*config.dataset, source, datasets), *training, *validation, progress);
  } else {
    auto files = findFiles(*config.dataset, source, datasets, into, progress);
    importFiles(config, files, *training, *validation, progress);
  }
  training->finish();
  validation->finish();
}

}  // namespace io
