// io/data_config.h: the [data] section: which records, how many per step, and what is done to an
// image.
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

// How validation images are dealt to workers.
enum class ValidationPart { SPLIT, WHOLE };

// What happens when a record cannot be read (a truncated JPEG, a wrong checksum).
enum class BadRecordPolicy { FAIL, SKIP };

// Where a worker has the images of all records, beside where they are stored.
enum class DataCache { NONE, DEVICE };

// Where training images are cropped.
enum class CropPlace { RANDOM, CENTRE };

// What a crop holds where it reaches over the edge of its image.
enum class Padding { REFLECT, EDGE, VALUE };

// Which training images are swapped left and right: none; those that a draw for each pass says; or
// those that one draw says in every other pass, and the others in the passes between.
enum class Mirror { NEVER, RANDOM, ALTERNATE };

// One look at a validation image: the centre crop moved, then mirrored or not.
struct View {
  int down;  // pixels
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

// What is done to each image between record and batch, in this order: pad, crop, subtract, mirror,
// divide, scale. The mean image is padded and cropped as the image is and, as in MXNet, subtracted
// before mirroring.
struct AugmentConfig {
  uint pad = 0;  // pixels at each side that a crop may reach over
  Padding padMode = Padding::REFLECT;
  double padValue = 0;                   // the grey level of VALUE, before anything subtracted
  uint crop = 0;                         // pixels a side; 0 = as many as the image has
  CropPlace cropAt = CropPlace::RANDOM;  // in training; validation takes the centre
  Mirror mirror = Mirror::NEVER;         // in training only
  bool meanImage = false;                // subtract the mean of the un-augmented training images
  kj::Array<double> mean;  // subtract a constant a channel (in units of pixels, 0 to 255), or one
                           // for all; empty = none
  kj::Array<double> deviation;  // divide by a constant a channel, or one for all; empty = none
  double scale = 1;             // multiply last

  static AugmentConfig read(configs::Reader& reader);
};

// What messages call the settings of a data set: the keys of an experiment file, or the flags of a
// command.
struct SettingNames {
  const char* source = "data.source";
  const char* dataset = "data.dataset";
  const char* resize = "data.resize_short_side";
  const char* folder = "RUNNER_CACHE";  // says where records are written
  // What leaves bad records out: as advice, and beside a record that was left out.
  const char* skip = "set data.on_bad_record = \"skip\"";
  const char* skipped = "on_bad_record = \"skip\"";
};

// [data]
struct DataConfig {
  const DatasetKind* dataset;
  configs::Span datasetSpan;
  // A local folder or mirror; else RUNNER_DATASETS; else the official address.
  kj::Maybe<kj::String> source;
  uint batchSize;               // images per step and worker
  configs::Span batchSizeSpan;  // of its value, or of [data] without one
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
  uint resizeShortSide;  // at import; 0 = as they are
  BadRecordPolicy onBadRecord = BadRecordPolicy::FAIL;
  DataCache cache = DataCache::NONE;
  configs::Span cacheSpan;
  AugmentConfig augment;
  SettingNames names;

  // How often all workers together read each record that is trained on in an epoch.
  uint readings(uint workers) const { return part == TrainingPart::SPLIT ? 1 : workers; }

  // The views of a validation, which may be the last of the run.
  kj::ArrayPtr<const View> views(bool isLast) const {
    return isLast || viewsAt == ViewsAt::EVERY ? validationViews : CENTRE_VIEW;
  }

  static DataConfig read(configs::Reader& reader);
};

}  // namespace io
