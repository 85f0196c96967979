// io/data_config.h: the [data] section: which records, in which order, and how many per step.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "configs/language/word.h"
#include "io/augment_config.h"
#include "io/dataset_kinds.h"
#include "io/image.h"

namespace io {

// Which training records a worker reads. SPLIT: in each pass, one worker reads each record. WHOLE:
// every worker reads all records, each in a different order. SAME: every worker reads all records,
// in the order of worker 0. See io/batches/stream.h.
enum class TrainingPart { SPLIT, WHOLE, SAME };

// In which order a pass goes over the training records.
enum class RecordOrder { SHUFFLED, CHUNKS, STORED };

// What happens at the end of a pass to records that do not fill one batch per worker. ROLL_OVER:
// they share a batch with the first records of the next pass. DISCARD: no worker reads them. PAD:
// the first records of the pass fill up the batches.
enum class LastBatch { ROLL_OVER, DISCARD, PAD };

// For RecordOrder::CHUNKS: see io/batches/chunk_order.h.
struct Chunks {
  uint records;  // per chunk
  uint window;   // chunks per window
};

// Which records are used for validation.
enum class ValidationSet { VALIDATION, HELD_OUT };

// How validation images are divided among the workers.
enum class ValidationPart { SPLIT, WHOLE };

// What happens when a record cannot be read (a truncated JPEG, a wrong checksum).
enum class BadRecordPolicy { FAIL, SKIP };

// Where a worker keeps the images of all records, in addition to the record database.
enum class DataCache { NONE, DEVICE };

// One view of a validation image: the centre crop, moved, then mirrored or not.
struct View {
  int down;  // in pixels
  int right;
  bool mirror;
  float weight;  // of its logits in the mean over all views
};

// Which validations use `validation_views`: each, or only the last one of the run. The others use
// the centre crop alone.
enum class ViewsAt { EVERY, LAST };

extern const kj::ArrayPtr<const configs::Word<Encoding>> ENCODINGS;
// The weights of the views of an image add up to 1.
extern const kj::ArrayPtr<const configs::Word<kj::ArrayPtr<const View>>> VALIDATION_VIEWS;
extern const kj::ArrayPtr<const View> CENTRE_VIEW;  // the only one of "centre"

// The names of a data set's settings in messages: keys of an experiment file, or flags of a
// command.
struct SettingNames {
  const char* source = "data.source";
  const char* validationSource = "data.validation_source";
  const char* labels = "data.labels";
  const char* validationLabels = "data.validation_labels";
  const char* dataset = "data.dataset";
  const char* resize = "data.resize_short_side";
  const char* folder = "RUNNER_CACHE";  // the setting of the folder that records are written to
  // How to leave out bad records. Messages give `skip` as advice, and print `skipped` beside a
  // record that was left out.
  const char* skip = "set data.on_bad_record = \"skip\"";
  const char* skipped = "on_bad_record = \"skip\"";
  // Another way to get a missing data set, which messages add to the usual ones: ", or …".
  const char* otherwise = "";
};

// [data]
struct DataConfig {
  const DatasetKind* dataset;
  configs::Span datasetSpan;
  // A folder, an archive or an address. If it is null, RUNNER_DATASETS and then the official
  // address are used.
  kj::Maybe<kj::String> source;
  configs::Span sourceSpan;
  // For image folders: the same with the validation images. Null: every tenth image
  // of `source` is for validation.
  kj::Maybe<kj::String> validationSource;
  configs::Span validationSourceSpan;
  // For image folders: files that label the images of `source` and of `validationSource`. If there
  // is no `validationSource`, `validationLabels` names images of `source`. Null: the labels come
  // from a labels.tsv in or beside that place, or else from the folders of the images.
  kj::Maybe<kj::String> labels;
  kj::Maybe<kj::String> validationLabels;
  // For image folders: a file with the names of the classes.
  kj::Maybe<kj::String> classNames;
  // For data sets whose classes have names: the classes whose images are used, in the order of
  // their new labels. Empty: all classes.
  kj::Array<kj::String> classes;
  // A folder with the packed records, which a launcher has copied to this machine. It is not a key
  // of the file, but an option of `runner role`. If it is set, nothing is imported.
  kj::Maybe<kj::String> copy;
  uint batchSize;               // images per step and worker
  configs::Span batchSizeSpan;  // of batch_size's value, or of [data] if the key is absent
  TrainingPart part = TrainingPart::SPLIT;
  RecordOrder order = RecordOrder::SHUFFLED;
  Chunks chunks{};
  LastBatch lastBatch = LastBatch::ROLL_OVER;
  uint64_t heldOut;  // the first training records, which are not trained on
  configs::Span heldOutSpan;
  ValidationSet validateOn = ValidationSet::VALIDATION;
  ValidationPart validation = ValidationPart::SPLIT;
  kj::ArrayPtr<const View> validationViews = CENTRE_VIEW;
  ViewsAt viewsAt = ViewsAt::EVERY;
  uint readerThreads;  // threads that read records ahead, per worker; 0: the steps read them
                       // themselves
  bool addsReaders;    // whether training may take more threads than these
  Encoding encoding;
  uint resizeShortSide;  // in pixels, at import; 0: unchanged
  BadRecordPolicy onBadRecord = BadRecordPolicy::FAIL;
  DataCache cache = DataCache::NONE;
  configs::Span cacheSpan;
  AugmentConfig augment;
  SettingNames names;

  // Whether validation uses the first training records, which are then excluded from training.
  bool validatesOnHeldOut() const { return validateOn == ValidationSet::HELD_OUT; }
  // Whether every worker validates on all images, and not only on its own part.
  bool eachValidatesAll() const { return validation == ValidationPart::WHOLE; }
  // Returns how often all workers together read each training record in an epoch.
  uint readings(uint workers) const { return part == TrainingPart::SPLIT ? 1 : workers; }

  // Returns the views of a validation. `isLast`: it is the last one of the run.
  kj::ArrayPtr<const View> views(bool isLast) const {
    return isLast || viewsAt == ViewsAt::EVERY ? validationViews : CENTRE_VIEW;
  }

  static DataConfig read(configs::Reader& reader);
};

}  // namespace io
