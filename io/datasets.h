// io/datasets.h: the data sets: where they come from, and how they become records.
#pragma once

#include <kj/array.h>
#include <kj/filesystem.h>
#include <kj/function.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "io/data_config.h"
#include "io/record_db.h"

namespace io {

// Told now and then while something long goes on ("downloading cifar-10-binary.tar.gz", 12 MB, 170 MB; total 0 =
// unknown). Units are in `what`.
using Progress = kj::Function<void(kj::StringPtr what, uint64_t done, uint64_t total)>;

// A row of the table of data sets; the table stands at the foot of datasets.cc.
struct DatasetKind {
  const char* name;
  const char* doc;
  // … what fetch and import need: file names, checksums of the extracted files, official address, classes, shape.
  // (Filled in by datasets.cc; other folders use only name and doc.)
  const struct DatasetSource* source;
};

extern const kj::ArrayPtr<const DatasetKind> DATASETS;

// An imported data set, open for reading. Thread-safe.
class Dataset {
public:
  virtual ~Dataset() noexcept(false) = default;

  // The stored records. All live as long as the Dataset.
  virtual const RecordDb& training() const = 0;
  virtual const RecordDb& validation() const = 0;

  // Number of classes; labels are 0 … classes-1.
  virtual uint classes() const = 0;
  // Shape of the stored images, if all have the same: image folders without resize may not.
  virtual kj::Maybe<ImageShape> storedShape() const = 0;
  // Shape of an image in a batch (after crop).
  virtual ImageShape batchShape() const = 0;
  // Mean of the un-augmented training images, C×H×W float32 of the stored shape; empty unless it was asked for.
  virtual kj::ArrayPtr<const float> meanImage() const = 0;
};

// Fetches, imports and caches the data set of `config` unless that was done before, and opens it.
//
// The cache is $RUNNER_CACHE or ~/.cache/runner; a file lock lets one of several processes import while the others
// wait. An import is complete or not there (written beside, then renamed). Checksums are those of the extracted
// files. Throws with the way out if the source cannot be found, read or trusted.
kj::Own<Dataset> openDataset(const DataConfig& config, Progress progress);

// Shape and number of classes, and numbers of records, of the data set, known without fetching it where it has a
// fixed size (all but image folders); null where the records must be looked at.
struct DatasetFacts {
  ImageShape shape;  // of the stored images
  uint classes;
  uint64_t trainingRecords;
  uint64_t validationRecords;
};
kj::Maybe<DatasetFacts> factsOf(const DataConfig& config);

}  // namespace io
