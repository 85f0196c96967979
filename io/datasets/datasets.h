// io/datasets/datasets.h: data sets, imported once and opened for reading.
#pragma once

#include <kj/array.h>
#include <kj/memory.h>
#include <kj/string.h>

#include "configs/language/warning.h"
#include "io/data_config.h"
#include "io/images/augment.h"
#include "io/left_out.h"
#include "io/progress.h"
#include "io/records/record_db.h"

namespace io {

// An imported data set, open for reading. Thread-safe.
class Dataset {
public:
  virtual ~Dataset() noexcept(false) = default;

  // The stored records. All live as long as the Dataset.
  virtual const RecordDb& training() const = 0;
  virtual const RecordDb& validation() const = 0;

  // Number of classes; labels are 0 … classes-1.
  virtual uint classes() const = 0;
  // Shape of the stored images, if all have the same: image folders may not.
  virtual kj::Maybe<ImageShape> storedShape() const = 0;
  // Shape of an image in a batch (after crop).
  virtual ImageShape batchShape() const = 0;
  // Mean of the un-augmented training images, C×H×W float32 of the stored shape; empty unless it
  // was asked for.
  virtual kj::ArrayPtr<const float> meanImage() const = 0;
  // What its import left out: the sentences that `warn` was told then. If they are more than six,
  // the first five, and one on how many more there are, and where. Empty if it left out nothing.
  virtual kj::Array<kj::String> leftOut() const = 0;
};

// Fetches, imports and caches the data set of `config` unless that was done before, and opens it.
//
// The cache is $RUNNER_CACHE, else $XDG_CACHE_HOME/runner, else ~/.cache/runner; a file lock lets
// one of several processes (or threads) import while the others wait. An import is complete or not
// there (written beside, then renamed); one of which a file was deleted is made anew. What a killed
// process has left, the next import removes. Checksums are
// those of the extracted files. A `source` that is a folder written by pack_records is opened where
// it is, whatever `encoding` and `resize_short_side` say. `warn` is told what an import leaves out,
// and writes to stderr by default. It is told none of that if the data set is there already: see
// Dataset::leftOut(). It is also told if the mean image cannot be kept. Throws with the way out if
// the source cannot be found, read or trusted.
kj::Own<Dataset> openDataset(
    const DataConfig& config, Progress progress, Warn warn = &configs::warn);

// Whether this process is writing an import: to end it then leaves a folder that only the next
// import removes. An exception from `progress` removes it. Signal handlers may call this.
bool isImporting();

// Reports that `config` is for images of the user's own, and neither it nor the environment says
// where these are.
void requireSource(const DataConfig& config, configs::Diagnostics& diagnostics);

// What is applied to its images. The data set, of this `config`, must outlive it.
Augmenter augmenterOf(const Dataset& dataset, const DataConfig& config);

// Imports the data set of `config` into the new folder `into`, with its mean image if its images
// have one shape. The folder appears when it is complete. Throws if it exists, if another process
// is making it, or if the folder `into`.part, in which it is made, is somebody else's.
void packDataset(
    const DataConfig& config, kj::StringPtr into, Progress progress, Warn warn = &configs::warn);

// Shape and number of classes, and numbers of records, of the data set, known without fetching it
// where it has a fixed size (all but image folders); null where the records must be looked at.
struct DatasetFacts {
  ImageShape shape;  // of the stored images
  uint classes;
  uint64_t trainingRecords;
  uint64_t validationRecords;
  kj::Array<kj::String> leftOut = nullptr;  // as Dataset::leftOut() returns it
};
kj::Maybe<DatasetFacts> factsOf(const DataConfig& config);

// Whether [data] without `source` says what the records are: true of data sets of fixed content,
// false of image folders and of folders of packed records.
bool areRecordsKnown(const DataConfig& config);

// The SHA-256 of all records in their order, training before validation, as 64 hexadecimal digits:
// the same for the same records, wherever they lie. Opens the data set as openDataset() does.
kj::String recordsSha256(const DataConfig& config);

}  // namespace io
