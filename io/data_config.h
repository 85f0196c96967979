// io/data_config.h: the [data] section: which records, how many per step, and what is done to an
// image.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"
#include "io/dataset_kinds.h"
#include "io/image.h"

namespace io {

// How pixels are kept in the records.
struct Encoding {
  const char* name;  // raw, jpeg
  const char* doc;
  enum Word { RAW, JPEG } word;
};

// Which training records a worker reads.
struct TrainingPart {
  const char* name;  // split, whole, same
  const char* doc;
  enum Word { SPLIT, WHOLE, SAME } word;
};

// In which order a pass goes over the training records.
struct RecordOrder {
  const char* name;  // shuffled, stored
  const char* doc;
  enum Word { SHUFFLED, STORED } word;
};

// Which records are validated on.
struct ValidationSet {
  const char* name;  // validation, held_out
  const char* doc;
  enum Word { VALIDATION, HELD_OUT } word;
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

// Where a worker has the images of all records, beside where they are stored.
struct DataCache {
  const char* name;  // none, device
  const char* doc;
  enum Word { NONE, DEVICE } word;
};

// Where training images are cropped.
struct CropPlace {
  const char* name;  // random, centre
  const char* doc;
  enum Word { RANDOM, CENTRE } word;
};

// What a crop holds where it reaches over the edge of its image.
struct Padding {
  const char* name;  // reflect, edge, value
  const char* doc;
  enum Word { REFLECT, EDGE, VALUE } word;
};

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

// The views of a validation image; their weights add up to 1.
struct ValidationViews {
  const char* name;  // centre, mirror, mirror_shift
  const char* doc;
  kj::ArrayPtr<const View> views;
};

// Which validations take them.
struct ViewsAt {
  const char* name;  // every, last
  const char* doc;
  enum Word { EVERY, LAST } word;
};

extern const kj::ArrayPtr<const Encoding> ENCODINGS;
extern const kj::ArrayPtr<const TrainingPart> TRAINING_PARTS;
extern const kj::ArrayPtr<const RecordOrder> RECORD_ORDERS;
extern const kj::ArrayPtr<const ValidationSet> VALIDATION_SETS;
extern const kj::ArrayPtr<const ValidationPart> VALIDATION_PARTS;
extern const kj::ArrayPtr<const BadRecordPolicy> BAD_RECORD_POLICIES;
extern const kj::ArrayPtr<const DataCache> DATA_CACHES;
extern const kj::ArrayPtr<const CropPlace> CROP_PLACES;
extern const kj::ArrayPtr<const Padding> PADDINGS;
extern const kj::ArrayPtr<const ValidationViews> VALIDATION_VIEWS;
extern const kj::ArrayPtr<const ViewsAt> VIEWS_AT;
extern const kj::ArrayPtr<const View> CENTRE_VIEW;  // the only one of "centre"

// What is done to each image between record and batch, in this order: pad, crop, subtract, mirror,
// divide, scale. The mean image is padded and cropped as the image is and, as in MXNet, subtracted
// before mirroring.
struct AugmentConfig {
  uint pad = 0;  // pixels at each side that a crop may reach over
  Padding::Word padMode = Padding::REFLECT;
  double padValue = 0;  // the grey level of VALUE, before anything subtracted
  uint crop = 0;        // pixels a side; 0 = as many as the image has
  CropPlace::Word cropAt = CropPlace::RANDOM;  // in training; validation takes the centre
  Mirror mirror = Mirror::NEVER;               // in training only
  bool meanImage = false;  // subtract the mean of the un-augmented training images
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
  const TrainingPart* part;
  const RecordOrder* order;
  uint64_t heldOut;  // the first training records, which are not trained on
  configs::Span heldOutSpan;
  const ValidationSet* validateOn;
  const ValidationPart* validation;
  const ValidationViews* validationViews;
  const ViewsAt* viewsAt;
  uint readerThreads;
  const Encoding* encoding;
  uint resizeShortSide;  // at import; 0 = as they are
  const BadRecordPolicy* onBadRecord;
  DataCache::Word cache = DataCache::NONE;
  configs::Span cacheSpan;
  AugmentConfig augment;
  SettingNames names;

  // How often all workers together read each record that is trained on in an epoch.
  uint readings(uint workers) const { return part->word == TrainingPart::SPLIT ? 1 : workers; }

  // The views of a validation, which may be the last of the run.
  kj::ArrayPtr<const View> views(bool isLast) const {
    return isLast || viewsAt->word == ViewsAt::EVERY ? validationViews->views : CENTRE_VIEW;
  }

  static DataConfig read(configs::Reader& reader);
};

}  // namespace io
