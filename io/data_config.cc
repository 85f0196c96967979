#include "io/data_config.h"

namespace io {

namespace {

constexpr Encoding ENCODING_ROWS[] = {
    {"raw", "Pixels as they are: the fastest to read.", Encoding::RAW},
    {"jpeg",
        "JPEG files: small for photographs, and a decoding an image. Images that come otherwise "
        "are encoded with quality 95.",
        Encoding::JPEG},
};

constexpr TrainingPart TRAINING_PART_ROWS[] = {
    {"split",
        "Each worker a part of every pass: W workers of batch b read what one worker of batch W·b "
        "reads.",
        TrainingPart::SPLIT},
    {"whole",
        "Each worker all records, in an order of its own: an epoch has W times as many images.",
        TrainingPart::WHOLE},
    {"same", "Each worker all records, all workers in the same order.", TrainingPart::SAME},
};

constexpr RecordOrder RECORD_ORDER_ROWS[] = {
    {"shuffled", "Every pass in an order of its own, drawn from `train.seed`.",
        RecordOrder::SHUFFLED},
    {"stored", "Every pass in the order of the records.", RecordOrder::STORED},
};

constexpr ValidationSet VALIDATION_SET_ROWS[] = {
    {"validation", "The data set's own validation records.", ValidationSet::VALIDATION},
    {"held_out", "The training records that `held_out` keeps out of training.",
        ValidationSet::HELD_OUT},
};

constexpr ValidationPart VALIDATION_PART_ROWS[] = {
    {"split", "Each worker a part; the coordinator adds the counts.", ValidationPart::SPLIT},
    {"whole", "Each worker all of them.", ValidationPart::WHOLE},
};

constexpr BadRecordPolicy BAD_RECORD_POLICY_ROWS[] = {
    {"fail", "The run ends and names the record.", BadRecordPolicy::FAIL},
    {"skip",
        "The record is counted and left out. In training the next good one of its batch stands in.",
        BadRecordPolicy::SKIP},
};

constexpr CropPlace CROP_PLACE_ROWS[] = {
    {"random", "At a place drawn for each image and pass.", CropPlace::RANDOM},
    {"centre", "In the middle, as validation images are.", CropPlace::CENTRE},
};

constexpr configs::IntegerLimits BATCH_SIZES = {1, 65536};
constexpr configs::IntegerLimits HELD_OUT = {0, uint32_t(kj::maxValue)};
constexpr configs::IntegerLimits READER_THREADS = {1, 64};
// The side of a square of IMAGE_PIXELS_MAX.
constexpr configs::IntegerLimits SIDES = {0, 8192};

// What a fixed shape allows to be seen while the file is read.
void check(configs::Reader& reader, const AugmentConfig& augment, ImageShape stored) {
  auto checkNumbers = [&](kj::StringPtr key, kj::ArrayPtr<const double> numbers) {
    if (numbers.size() > 1 && numbers.size() != stored.channels) {
      reader.error(key,
          kj::str("`", key, "` has ", numbers.size(), " numbers for images of ", stored.channels,
              stored.channels == 1 ? " channel" : " channels"),
          "give one number, or one a channel");
    }
  };
  checkNumbers("mean", augment.mean);
  checkNumbers("deviation", augment.deviation);
  if (augment.crop > stored.height || augment.crop > stored.width) {
    reader.error("crop", kj::str("`crop` is larger than the images, which have ", stored.height,
                             "×", stored.width, " pixels"));
  }
}

}  // namespace

constinit const kj::ArrayPtr<const Encoding> ENCODINGS(ENCODING_ROWS);
constinit const kj::ArrayPtr<const TrainingPart> TRAINING_PARTS(TRAINING_PART_ROWS);
constinit const kj::ArrayPtr<const RecordOrder> RECORD_ORDERS(RECORD_ORDER_ROWS);
constinit const kj::ArrayPtr<const ValidationSet> VALIDATION_SETS(VALIDATION_SET_ROWS);
constinit const kj::ArrayPtr<const ValidationPart> VALIDATION_PARTS(VALIDATION_PART_ROWS);
constinit const kj::ArrayPtr<const BadRecordPolicy> BAD_RECORD_POLICIES(BAD_RECORD_POLICY_ROWS);
constinit const kj::ArrayPtr<const CropPlace> CROP_PLACES(CROP_PLACE_ROWS);

AugmentConfig AugmentConfig::read(configs::Reader& reader) {
  AugmentConfig config;
  config.crop = reader.integer(
      "crop", "Pixels a side of the square cut out. 0 takes the whole image.", SIDES, 0);
  config.cropAt =
      reader
          .choose<CropPlace>("crop_at", "Where training images are cropped.", CROP_PLACES, "random")
          .word;
  config.mirror = reader.flag(
      "mirror", "Whether training images are mirrored left to right with probability 1/2.", false);
  auto mean = reader.wordOrReals("mean",
      "What is subtracted: `\"image\"` = the mean of the un-augmented training images, pixel by "
      "pixel; or a list, one number a channel or one for all, in grey levels from 0 to 255. Absent "
      "= nothing.",
      "image", {});
  KJ_SWITCH_ONEOF(mean) {
    KJ_CASE_ONEOF(word, kj::String) {
      config.meanImage = true;
    }
    KJ_CASE_ONEOF(numbers, kj::Array<double>) {
      config.mean = kj::mv(numbers);
    }
  }
  config.deviation = reader.reals("deviation",
      "What is divided by after that: one number a channel or one for all, in grey levels. Absent "
      "= nothing.",
      {.above = 0});
  config.scale = reader.real("scale",
      "What is multiplied by last: 0.00392156862745098 = 1/255 gives pixels of 0 to 1.",
      {.above = 0}, 1);
  return config;
}

DataConfig DataConfig::read(configs::Reader& reader) {
  DataConfig config;
  config.dataset = &reader.choose<DatasetKind>("dataset", "Which images.", DATASETS);
  auto& source = *config.dataset->source;
  config.source = reader.maybeText("source",
      "Where they come from: a folder, an archive, a folder written by `pack_records`, or the "
      "address of a mirror. Absent = the folder named by the environment's RUNNER_DATASETS, then "
      "where Debian installs it, then the official address.");
  KJ_IF_MAYBE(place, config.source) {
    if (place->size() == 0) {
      reader.error("source", "`source` is empty", "name a folder or an archive, or leave it out");
    }
  }
  config.batchSize = reader.integer("batch_size", "Images a step a worker.", BATCH_SIZES, 128);
  config.part = &reader.choose<TrainingPart>(
      "part", "Which training records a worker reads.", TRAINING_PARTS, "split");
  config.order = &reader.choose<RecordOrder>(
      "order", "In which order a pass goes over the training records.", RECORD_ORDERS, "shuffled");
  config.heldOut = reader.integer("held_out",
      "So many training records, the first ones, are kept out of training. The mean image is still "
      "that of all.",
      HELD_OUT, 0);
  config.heldOutSpan = reader.span("held_out");
  config.validateOn = &reader.choose<ValidationSet>(
      "validate_on", "Which records are validated on.", VALIDATION_SETS, "validation");
  if (config.validateOn->word == ValidationSet::HELD_OUT && config.heldOut == 0) {
    reader.error("validate_on", "no training records are held out that could be validated on",
        "set data.held_out, or leave `validate_on` out");
  }
  config.validation = &reader.choose<ValidationPart>(
      "validation", "How validation images are dealt to the workers.", VALIDATION_PARTS, "split");
  config.readerThreads = reader.integer("reader_threads",
      "Threads a worker that read and decode ahead. What they deliver does not depend on it.",
      READER_THREADS, 2);
  config.encoding = &reader.choose<Encoding>("encoding",
      "How records keep their pixels; `image_folder` has \"jpeg\" as its default.", ENCODINGS,
      source.encoding);
  config.resizeShortSide = reader.integer("resize_short_side",
      "Pixels that the shorter side of each image gets at import, bilinear. 0 = as it is.", SIDES,
      0);
  config.onBadRecord = &reader.choose<BadRecordPolicy>("on_bad_record",
      "What is done about a record that cannot be read.", BAD_RECORD_POLICIES, "fail");
  auto stored = source.shape;
  if (stored.size() > 0 && config.resizeShortSide > 0) {
    stored = resizedShape(stored, config.resizeShortSide);
  }
  config.augment = reader.section("augment", "What is done to an image on its way into a batch.",
      [&](configs::Reader& section) {
        auto augment = AugmentConfig::read(section);
        if (section.isManual()) return augment;
        if (stored.size() > 0) {
          check(section, augment, stored);
        } else if (config.resizeShortSide > 0 && augment.crop > config.resizeShortSide) {
          section.error("crop",
              kj::str("`crop` is larger than the images, whose shorter side gets ",
                  config.resizeShortSide, " pixels"),
              kj::str("make data.resize_short_side at least ", augment.crop));
        }
        return augment;
      });
  return config;
}

}  // namespace io
