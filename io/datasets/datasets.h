// io/datasets/datasets.h: imports data sets once, and opens them for reading.
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

  // The folder that holds its files: TRAINING_FILE, VALIDATION_FILE and perhaps MEAN_FILE.
  virtual kj::StringPtr folder() const = 0;
  // The stored records. They live as long as the Dataset.
  virtual const RecordDb& training() const = 0;
  virtual const RecordDb& validation() const = 0;

  // The number of classes. Labels are 0 … classes-1.
  virtual uint classes() const = 0;
  // Their names, by label, as far as they are known.
  virtual kj::Array<kj::String> classNames() const = 0;
  // The shape of the stored images. Null if they differ, which only image folders may do.
  virtual kj::Maybe<ImageShape> storedShape() const = 0;
  // The shape of an image in a batch, after the crop.
  virtual ImageShape batchShape() const = 0;
  // The mean of the training images before augmentation: C×H×W float32 of the stored shape. Empty
  // unless the configuration asks for it.
  virtual kj::ArrayPtr<const float> meanImage() const = 0;
  // Returns sentences about everything that the import left out, which it also passed to `warn`. If
  // there are more than six, returns the first five, and one sentence that says how many more there
  // are, and where.
  virtual kj::Array<kj::String> leftOut() const = 0;
};

// Opens the data set of `config`. If that was not done before, fetches, imports and caches it
// first.
//
// The cache is $RUNNER_CACHE, else $XDG_CACHE_HOME/runner, else ~/.cache/runner. A file lock lets
// one of several processes (or threads) import, while the others wait. An import is complete or
// absent: it is written beside its place and then renamed. If one of its files was deleted, the
// import is repeated. The next import removes files that a killed process has left. Checksums are
// those of the extracted files.
//
// A `source` that is a folder written by pack_records is opened in place, whatever `encoding` and
// `resize_short_side` say. So is `config.copy`, in place of any source.
//
// The images of an image folder may lie at an address: see lookForChanges(). The archive is
// downloaded into the folder of the import, and removed when the import ends. If the import fails
// or is interrupted, the download stays for the next import of the same file.
//
// `warn`, which by default writes to stderr, is called with sentences about everything that an
// import leaves out. It is not called for a data set that was imported before: see
// Dataset::leftOut(). It is also called if the mean image cannot be kept.
//
// Throws, and says what to do, if the source cannot be found, cannot be read, or has a wrong
// checksum.
kj::Own<Dataset> openDataset(
    const DataConfig& config, Progress progress, Warn warn = &configs::warn);

// Asks the servers whether the images of `config` that lie at addresses have changed since they
// were imported. If so, the next openDataset(), also in other processes with the same cache,
// imports them again. Without a call of this function, openDataset() asks the servers only if it
// has to import. If a server does not answer, openDataset() uses the records that were imported
// from there before, and `warn` says so. Throws if there are no such records.
void lookForChanges(const DataConfig& config, Progress progress, Warn warn = &configs::warn);

// Reports an error if `config` needs the user's own images, and neither `config` nor the
// environment says where they are.
void requireSource(const DataConfig& config, configs::Diagnostics& diagnostics);
// Reports an error for each source of `config` that is a path to nothing. An import would throw.
void requireSourcesHere(const DataConfig& config, configs::Diagnostics& diagnostics);

// Returns the names of the classes in `db`, by label: those that it has, or else those of its data
// set, as far as they are known.
kj::Array<kj::String> classNamesOf(const RecordDb& db);

// Imports the data set of `config` into the new folder `into`, with its mean image if all images
// have one shape. The folder appears when it is complete. Throws if it exists, or if another
// process is making it. Also throws if `into`.part, in which the folder is made, is not ours.
//
// If the process is killed, `progress` throws or the disk is full, the packed images of an image
// folder stay in `into`.part. The next call with the same images and settings continues with them.
void packDataset(
    const DataConfig& config, kj::StringPtr into, Progress progress, Warn warn = &configs::warn);

// Facts about a data set. factsOf() needs no download. It returns null for the user's own images
// and if `config` chooses classes, because the records must be read first.
struct DatasetFacts {
  ImageShape shape;  // of the stored images
  uint classes;
  uint64_t trainingRecords;
  uint64_t validationRecords;
  kj::Array<kj::String> leftOut = nullptr;     // as Dataset::leftOut() returns it
  kj::Array<kj::String> classNames = nullptr;  // as Dataset::classNames() returns them
  // As Dataset::meanImage() returns it. Empty in the facts of factsOf().
  kj::Array<float> meanImage = nullptr;
};
kj::Maybe<DatasetFacts> factsOf(const DataConfig& config);

// Whether [data] without `source` determines the records. True for data sets whose files have
// published checksums. False for CIFAR-100, for the user's own images and for folders of packed
// records.
bool areRecordsKnown(const DataConfig& config);

// Returns the SHA-256 of all records in their order, training before validation, as 64 hexadecimal
// digits. The same records have the same sum, wherever they are stored. The sum of a `config` with
// a file of class names also covers these names. Opens the data set as openDataset() does.
kj::String recordsSha256(const DataConfig& config);
kj::String recordsSha256(const RecordDb& training, const RecordDb& validation);

}  // namespace io
