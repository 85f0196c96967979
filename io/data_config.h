// io/data_config.h: the [data] section: which records, how many a step, and what is done to an image.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"

namespace io {

using kj::uint;

// Size of one image. Arrays of images are N×C×H×W.
struct ImageShape {
  uint channels;
  uint height;
  uint width;

  size_t size() const { return size_t(channels) * height * width; }
  bool operator==(const ImageShape&) const = default;
};

struct DatasetKind;  // a row of DATASETS, see datasets.h

// How pixels are kept in the records.
struct Encoding {
  const char* name;  // raw, jpeg
  const char* doc;
  enum Word { RAW, JPEG } word;
};

// How validation images are dealt to workers.
struct ValidationPart {
  const char* name;  // split, whole
  const char* doc;
  enum Word { SPLIT, WHOLE } word;
};

// What happens when a record cannot be read (a truncated JPEG, a wrong checksum).
struct BadRecordPolicy {
  const char* name;  // fail, skip
  const char* doc;
  enum Word { FAIL, SKIP } word;
};

// What is done to each image between record and batch, in this order: crop, mirror, subtract, scale.
struct AugmentConfig {
  uint crop;                   // pixels a side; 0 = the whole image. Random in training, the centre in validation.
  bool mirror;                 // left and right swapped with probability 1/2, in training only
  bool meanImage;              // subtract the mean of the un-augmented training images, cropped like the image
  kj::Array<double> mean;      // subtract a constant a channel (in units of pixels, 0 to 255); empty = none
  kj::Array<double> deviation; // divide by a constant a channel; empty = none
  double scale;                // multiply last

  static AugmentConfig read(configs::Reader& reader);
};

// [data]
struct DataConfig {
  const DatasetKind* dataset;
  kj::Maybe<kj::String> source;  // a local folder or mirror; else RUNNER_DATASETS; else the official address
  uint batchSize;                // images a step a worker
  const ValidationPart* validation;
  uint readerThreads;
  const Encoding* encoding;
  uint resizeShortSide;          // at import; 0 = as they are
  const BadRecordPolicy* onBadRecord;
  AugmentConfig augment;

  static DataConfig read(configs::Reader& reader);
};

}  // namespace io
