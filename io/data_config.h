// io/data_config.h: the [data] section: which records, how many per step, and how images are
// augmented.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "configs/language/word.h"
#include "io/dataset_kinds.h"
#include "io/image.h"

namespace io {

// Which training records a worker reads.
enum class TrainingPart { SPLIT, WHOLE, SAME };

// In which order a pass goes over the training records.
enum class RecordOrder { SHUFFLED, STORED };

// Which records are validated on.
enum class ValidationSet { VALIDATION, HELD_OUT };

// How validation images are divided over workers.
enum class ValidationPart { SPLIT, WHOLE };

// What happens when a record cannot be read (a truncated JPEG, a wrong checksum).
enum class BadRecordPolicy { FAIL, SKIP };

// Where a worker keeps the images of all records, apart from the records themselves.
enum class DataCache { NONE, DEVICE };

// Where training images are cropped.
enum class CropPlace { RANDOM, CENTRE };

// What a crop shows beyond the edge of its image.
enum class Padding { REFLECT, EDGE, VALUE };

// Which training images are swapped left and right. NEVER: none. RANDOM: each pass draws for each
// image. ALTERNATE: one draw per image says whether it is swapped in even or in odd passes.
enum class Mirror { NEVER, RANDOM, ALTERNATE };

// One view of a validation image: the centre crop, moved, then mirrored or not.
struct View {
  int down;  // in pixels
  int right;
  bool mirror;
  float weight;  // of its logits in the mean over all views
};

// Which validations take the views of `validation_views`.
enum class ViewsAt { EVERY, LAST };

extern const kj::ArrayPtr<const configs::Word<Encoding>> ENCODINGS;
// The weights of the views of an image add up to 1.
extern const kj::ArrayPtr<const configs::Word<kj::ArrayPtr<const View>>> VALIDATION_VIEWS;
extern const kj::ArrayPtr<const View> CENTRE_VIEW;  // the only one of "centre"

// How images are augmented between record and batch, in this order: pad, crop, resize, subtract,
// mirror, divide, scale. The mean image is padded and cropped like the image. As in MXNet, it is
// subtracted before mirroring.
struct AugmentConfig {
  uint pad = 0;  // pixels that a crop may reach over each side
  Padding padMode = Padding::REFLECT;
  double padValue = 0;                   // the grey level of VALUE, before anything is subtracted
  uint crop = 0;                         // pixels per side; 0: the whole image
  CropPlace cropAt = CropPlace::RANDOM;  // in training; validation crops at the centre
  // Crops that are resized to `crop` (Szegedy et al. 2015, arXiv 1409.4842): in training, the least
  // and the largest share of the image's area. 0 and 0: crops are not resized.
  double areaMin = 0;
  double areaMax = 0;
  double aspectMin = 0;  // their width, divided by their height
  double aspectMax = 0;
  double centreCrop = 0;  // in validation: their side as a share of the image's shorter side
  Mirror mirror = Mirror::NEVER;  // in training only
  // subtract the mean of the training images before augmentation
  bool meanImage = false;
  kj::Array<double> mean;       // subtract one constant per channel (0 to 255), or one
                                // for all; empty: none
  kj::Array<double> deviation;  // divide by one constant per channel, or one for all; empty: none
  double scale = 1;             // multiply by this last

  bool resizes() const { return areaMax > 0; }

  static AugmentConfig read(configs::Reader& reader);
};

// What messages call the settings of a data set: keys of an experiment file, or flags of a command.
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
  // One more way to get a missing data set, after those that messages always name: ", or …".
  const char* otherwise = "";
};

// [data]
struct DataConfig {
  const DatasetKind* dataset;
  configs::Span datasetSpan;
  // A local folder or mirror. If it is null, RUNNER_DATASETS and then the official address are
  // used.
  kj::Maybe<kj::String> source;
  // For image folders: a folder or an archive with the validation images. Null: every tenth image
  // of `source` is for validation.
  kj::Maybe<kj::String> validationSource;
  // For image folders: files that label the images of `source` and of `validationSource`. If there
  // is no `validationSource`, `validationLabels` names images of `source`. Null: a labels.tsv in
  // the place or beside it, or else the folders of the images.
  kj::Maybe<kj::String> labels;
  kj::Maybe<kj::String> validationLabels;
  // For image folders: a file with the names of the classes.
  kj::Maybe<kj::String> classNames;
  // A folder with the packed records, which a launcher has copied to this machine: no key, but an
  // option of a role. Nothing is imported then.
  kj::Maybe<kj::String> copy;
  uint batchSize;               // images per step and worker
  configs::Span batchSizeSpan;  // of batch_size's value, or of [data] if the key is absent
  TrainingPart part = TrainingPart::SPLIT;
  RecordOrder order = RecordOrder::SHUFFLED;
  uint64_t heldOut;  // the first training records, which are not trained on
  configs::Span heldOutSpan;
  ValidationSet validateOn = ValidationSet::VALIDATION;
  ValidationPart validation = ValidationPart::SPLIT;
  kj::ArrayPtr<const View> validationViews = CENTRE_VIEW;
  ViewsAt viewsAt = ViewsAt::EVERY;
  uint readerThreads;
  Encoding encoding;
  uint resizeShortSide;  // in pixels, at import; 0: unchanged
  BadRecordPolicy onBadRecord = BadRecordPolicy::FAIL;
  DataCache cache = DataCache::NONE;
  configs::Span cacheSpan;
  AugmentConfig augment;
  SettingNames names;

  // Returns how often all workers together read each training record in an epoch.
  uint readings(uint workers) const { return part == TrainingPart::SPLIT ? 1 : workers; }

  // Returns the views of a validation. `isLast`: it is the last one of the run.
  kj::ArrayPtr<const View> views(bool isLast) const {
    return isLast || viewsAt == ViewsAt::EVERY ? validationViews : CENTRE_VIEW;
  }

  static DataConfig read(configs::Reader& reader);
};

}  // namespace io
