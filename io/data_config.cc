#include "io/data_config.h"

namespace io {

namespace {

constexpr configs::Word<Encoding> ENCODING_ROWS[] = {
    {"raw", "Uncompressed pixels. They are the fastest to read.", Encoding::RAW},
    {"jpeg",
        "JPEG files. They are small for photographs, but an image must be decoded each time that "
        "it is read. Images in other formats are encoded as JPEG with quality 95.",
        Encoding::JPEG},
};

constexpr configs::Word<TrainingPart> TRAINING_PARTS[] = {
    {"split",
        "Each worker reads its own part of every pass. W workers with batch size b together read "
        "what one worker with batch size W·b reads.",
        TrainingPart::SPLIT},
    {"whole",
        "Each worker reads all records, in its own order. An epoch has W times as many images.",
        TrainingPart::WHOLE},
    {"same",
        "Each worker reads all records, and all workers read them in the same order. An epoch has "
        "W times as many images.",
        TrainingPart::SAME},
};

constexpr configs::Word<RecordOrder> RECORD_ORDERS[] = {
    {"shuffled", "Every pass has a different random order, which depends on `train.seed`.",
        RecordOrder::SHUFFLED},
    {"chunks",
        "A chunk is a group of records that are stored one after another. Every pass draws the "
        "chunks in random order, `window_chunks` at a time, and shuffles the records of these "
        "chunks together. Reading then stays fast if the records do not fit into memory.",
        RecordOrder::CHUNKS},
    {"stored", "Every pass reads the records in the order in which they are stored.",
        RecordOrder::STORED},
};

constexpr configs::Word<LastBatch> LAST_BATCHES[] = {
    {"roll_over",
        "They are read together with the first records of the next pass. Each record is read "
        "exactly once per pass.",
        LastBatch::ROLL_OVER},
    {"discard", "They are not read in this pass. Each record is read at most once per pass.",
        LastBatch::DISCARD},
    {"pad",
        "The first records of the same pass are read again, to fill the batches. Each record is "
        "read at least once per pass.",
        LastBatch::PAD},
};

constexpr configs::Word<ValidationSet> VALIDATION_SETS[] = {
    {"validation", "The data set's own validation records.", ValidationSet::VALIDATION},
    {"held_out", "The training records that `held_out` excludes from training.",
        ValidationSet::HELD_OUT},
};

constexpr configs::Word<ValidationPart> VALIDATION_PARTS[] = {
    {"split", "Each worker validates on its own part, and the coordinator adds the counts.",
        ValidationPart::SPLIT},
    {"whole", "Each worker validates on all images.", ValidationPart::WHOLE},
};

constexpr configs::Word<BadRecordPolicy> BAD_RECORD_POLICIES[] = {
    {"fail", "The run ends, and its message names the record.", BadRecordPolicy::FAIL},
    {"skip",
        "The record is left out and counted. In training, the next good record of its batch takes "
        "its place.",
        BadRecordPolicy::SKIP},
};

constexpr configs::Word<DataCache> DATA_CACHES[] = {
    {"none", "Nowhere. Each batch is read from the record database.", DataCache::NONE},
    {"device",
        "In the memory of each GPU, as bytes. The images are read once. After that, a step sends "
        "only the indices of its images and their random crops and mirrors to the GPU. All images "
        "must have the same size, and all devices must be GPUs. Cannot be combined with "
        "`crop_area`, random colours, `cutout`, or `on_bad_record = \"skip\"`.",
        DataCache::DEVICE},
};

constexpr View CENTRE_ROWS[] = {{0, 0, false, 1}};
constexpr View MIRROR_ROWS[] = {{0, 0, false, 0.5}, {0, 0, true, 0.5}};
constexpr View MIRROR_SHIFT_ROWS[] = {
    {0, 0, false, 0.25},
    {0, 0, true, 0.25},
    {-1, -1, false, 0.125},
    {-1, -1, true, 0.125},
    {1, 1, false, 0.125},
    {1, 1, true, 0.125},
};

constexpr configs::Word<kj::ArrayPtr<const View>> VALIDATION_VIEW_ROWS[] = {
    {"centre", "The image itself, or the crop from its middle.", CENTRE_ROWS},
    {"mirror", "The centre view and its mirror image, with weight 1/2 each.", MIRROR_ROWS},
    {"mirror_shift",
        "Six views, as in airbench94 (Jordan 2024, arXiv 2404.00498): the two views of `mirror`, "
        "with weight 1/4 each, and the same two views moved by one pixel, up and left or down and "
        "right, with weight 1/8 each.",
        MIRROR_SHIFT_ROWS},
};

constexpr configs::Word<ViewsAt> VIEWS_AT[] = {
    {"every", "Every validation.", ViewsAt::EVERY},
    {"last", "Only the run's last validation. Earlier ones use the centre view alone.",
        ViewsAt::LAST},
};

constexpr configs::IntegerLimits BATCH_SIZES = {1, 65536};
constexpr configs::IntegerLimits HELD_OUT = {0, uint32_t(kj::maxValue)};
constexpr configs::IntegerLimits READER_THREADS = {0, 64};

// Returns the end of a sentence about the size of padded images.
kj::String paddingBeside(const AugmentConfig& augment) {
  return augment.pad == 0 ? kj::String() : kj::str(" plus ", augment.pad, " on each side");
}

// Reads the keys for order = "chunks". With other orders, the resolved experiment leaves them out.
Chunks readChunks(configs::Reader& reader, RecordOrder order) {
  constexpr configs::IntegerLimits RECORDS = {1, 1 << 24};
  constexpr configs::IntegerLimits WINDOWS = {1, 1 << 16};
  constexpr kj::StringPtr KEYS[] = {"chunk_records"_kj, "window_chunks"_kj};
  if (order != RecordOrder::CHUNKS && !reader.isManual()) {
    for (auto key: KEYS) {
      reader.refuse(key, kj::str("`", key, "` has no effect without `order = \"chunks\"`"),
          kj::str("set order = \"chunks\", or leave `", key, "` out"), {"order"_kj});
    }
    return {};
  }
  Chunks chunks;
  chunks.records = reader.integer(KEYS[0],
      "With `order = \"chunks\"`: number of records per chunk. The chunks begin at different "
      "records in each pass.",
      RECORDS, 128);
  chunks.window = reader.integer(KEYS[1],
      "With `order = \"chunks\"`: how many chunks are drawn at a time. Their records are read in "
      "random order. All of these records should fit into memory. If the records are stored class "
      "by class, many small chunks give batches with more classes than a few large chunks.",
      WINDOWS, 128);
  return chunks;
}

// Reads a key that the resolved experiment leaves out if the file does not have it.
LastBatch readLastBatch(configs::Reader& reader) {
  if (!reader.isManual() && !reader.has("last_batch")) return LastBatch::ROLL_OVER;
  return configs::chooseWord(reader, "last_batch",
      "What happens to the last records of a pass if they are too few for another step of all "
      "workers. With `discard` and `pad`, all epochs have the same number of steps.",
      LAST_BATCHES, "roll_over");
}

// Whether one of `views` shows pixels beyond the edge of an image.
bool reachesOver(kj::ArrayPtr<const View> views) {
  for (auto& view: views) {
    if (view.down != 0 || view.right != 0) return true;
  }
  return false;
}

// Reads the names of files that label the images of a folder. The resolved experiment leaves these
// keys out if the file does not have them.
void readLabelFiles(configs::Reader& reader, DataConfig& config) {
  config.labels = reader.maybePath("labels",
      "For `image_folder`: a file with one line per image of `source`: `path<TAB>label`, `path "
      "label`, or in a .lst file of MXNet `number<TAB>label<TAB>path`. Images that the file does "
      "not name are left out. Default: the file `labels.tsv` in the folder, in the archive or "
      "beside the archive, if it exists. `labels.tsv` must name every image. If the first line of "
      "`labels.tsv` is `#path<TAB>label<TAB>name`, the third column holds the name of the class.");
  config.validationLabels = reader.maybePath("validation_labels",
      "Like `labels`, but for the images of `validation_source`. Without `validation_source`, the "
      "images of `source` that this file names are used for validation. In that case, `labels` "
      "must name the training images.");
  config.classNames = reader.maybePath("class_names",
      "For `image_folder`: a text file with the names of the classes, one per line, in the order "
      "of the labels. If the classes are folders, and for every folder there is a line that begins "
      "with the folder's name, the rest of that line is the name of the class. ImageNet's "
      "synset_words.txt is such a file. Default: the names of the folders, or those in "
      "`labels.tsv`.");
  struct File {
    kj::StringPtr key;
    kj::Maybe<kj::String>& path;
  };
  File files[] = {{"labels"_kj, config.labels}, {"validation_labels"_kj, config.validationLabels},
      {"class_names"_kj, config.classNames}};
  for (auto& file: files) {
    KJ_IF_MAYBE(path, file.path) {
      if (config.dataset->source->format != DatasetSource::FOLDER) {
        reader.error(file.key,
            kj::str("the data set `", config.dataset->name, "` has its own labels and names"),
            kj::str("leave `", file.key, "` out"), {"dataset"_kj});
      } else if (path->size() == 0) {
        reader.error(
            file.key, kj::str("`", file.key, "` is empty"), "name a file, or leave it out");
      }
    }
  }
  if (config.validationLabels != nullptr && config.validationSource == nullptr &&
      config.labels == nullptr) {
    reader.error("validation_labels",
        "`validation_labels` needs `labels`: all images of `source` would be for training, too",
        "set `labels` to the list of the training images, or `validation_source`");
  }
}

// Reads a key that the resolved experiment leaves out if the file does not have it.
void readClasses(configs::Reader& reader, DataConfig& config) {
  if (!reader.isManual() && !reader.has("classes")) return;
  config.classes = reader.texts("classes",
      "Names of the classes to use, for `mnist`, `fashion_mnist`, `cifar10` and `cifar100`. Images "
      "of other classes are left out at the import. Labels count from 0 in the order of this list. "
      "Default: all classes.");
  if (reader.isManual() || config.classes.size() == 0) return;
  auto known = classNamesOf(*config.dataset);
  if (known.size() == 0) {
    reader.error("classes",
        kj::str("the classes of `", config.dataset->name, "` have no known names"),
        "leave `classes` out; for `image_folder`, `labels` chooses images", {"dataset"_kj});
    return;
  }
  if (config.classes.size() == 1) {
    reader.error("classes", "a single class leaves nothing to learn", "name at least two classes");
    return;
  }
  auto names = KJ_MAP(name, known)->kj::StringPtr {
    return name;
  };
  for (auto i: kj::indices(config.classes)) {
    auto& name = config.classes[i];
    bool isKnown = false, isTwice = false;
    for (auto& each: known) isKnown = isKnown || each == name;
    for (auto& each: config.classes.slice(0, i)) isTwice = isTwice || each == name;
    if (isTwice) {
      reader.error("classes", kj::str("`", name, "` occurs twice in `classes`"));
    } else if (!isKnown) {
      auto help = kj::str("its classes: ", kj::strArray(names, ", "));
      KJ_IF_MAYBE(near, configs::nearest(name, names))
        help = kj::str("did you mean `", *near, "`?");
      reader.error(
          "classes", kj::str("`", config.dataset->name, "` has no class `", name, "`"), help);
    }
  }
}

// Reads a key that has no meaning on CPUs. The resolved experiment leaves the key out if the file
// does not have it.
void readCache(configs::Reader& reader, DataConfig& config) {
  config.cache = DataCache::NONE;
  config.cacheSpan = reader.span("cache");
  if (!reader.isManual() && !reader.has("cache")) return;
  config.cache = configs::chooseWord(reader, "cache",
      "Where a worker keeps the images of all records, besides the record database.", DATA_CACHES,
      "none");
  if (config.cache == DataCache::DEVICE && config.onBadRecord == BadRecordPolicy::SKIP) {
    reader.error("on_bad_record", "with `cache = \"device\"`, bad records cannot be skipped",
        "leave `on_bad_record` out, or set cache = \"none\"", {"cache"_kj});
  }
}

// The keys that decide the shape of images.
constexpr kj::StringPtr SHAPE[] = {"dataset"_kj, "resize_short_side"_kj};

// `reader` is the reader of [data].
void checkNumbers(configs::Reader& reader, const AugmentConfig& augment, uint channels) {
  auto check = [&](kj::StringPtr key, kj::ArrayPtr<const double> numbers) {
    if (numbers.size() > 1 && numbers.size() != channels) {
      reader.error(kj::str("augment.", key),
          kj::str("`", key, "` has ", numbers.size(), " numbers for images of ", channels,
              channels == 1 ? " channel" : " channels"),
          "give one number, or one per channel", SHAPE);
    }
  };
  check("mean", augment.mean);
  check("deviation", augment.deviation);
}

// `reader` is the reader of [data].
void checkColours(configs::Reader& reader, const ColourRanges& colours, uint channels) {
  if (channels == 3) return;
  auto check = [&](kj::StringPtr key, double amount) {
    if (amount == 0) return;
    reader.error(kj::str("augment.", key),
        kj::str(
            "`", key, "` needs images with 3 channels, but those of the data set have ", channels),
        kj::str("leave `", key, "` out"), {"dataset"_kj});
  };
  check("saturation", colours.saturation);
  check("lighting", colours.lighting);
}

// `side` is that of the images in a batch.
void checkCutout(configs::Reader& reader, const AugmentConfig& augment, uint side) {
  if (augment.cutout < side || augment.cutout == 0) return;
  reader.error("augment.cutout",
      kj::str("`cutout` must be smaller than the images of a batch, which have ", side, "×", side,
          " pixels"),
      kj::str("choose a smaller square, such as cutout = ", side / 2),
      {"dataset"_kj, "resize_short_side"_kj, "augment.crop"_kj});
}

// For images of a fixed shape, checks what can be checked without the data.
void check(configs::Reader& reader, const AugmentConfig& augment, ImageShape stored) {
  checkNumbers(reader, augment, stored.channels);
  checkColours(reader, augment.colours, stored.channels);
  auto size = kj::str("the images, which have ", sizeOf(stored), " pixels");
  uint side = kj::min(stored.height, stored.width);
  checkCutout(reader, augment, augment.crop > 0 ? augment.crop : side);
  if (augment.resizes()) return;
  if (augment.pad >= side) {
    reader.error("augment.pad", kj::str("`pad` must be smaller than ", size), nullptr, SHAPE);
  } else if (augment.crop > side + 2 * augment.pad) {
    reader.error("augment.crop", kj::str("`crop` is larger than ", size, paddingBeside(augment)),
        nullptr, {"dataset"_kj, "resize_short_side"_kj, "augment.pad"_kj});
  }
  if (augment.pad > 0 && augment.cropAt == CropPlace::CENTRE && augment.crop <= side) {
    reader.error("augment.pad", "`pad` has no effect where images are cropped in the middle",
        "set crop_at = \"random\", or leave `pad` out",
        {"augment.crop_at"_kj, "augment.crop"_kj, "dataset"_kj, "resize_short_side"_kj});
  }
}

// Reads where the images come from. The data set must be known.
void readSources(configs::Reader& reader, DataConfig& config) {
  config.source = reader.maybePath("source",
      "Where the images come from: a folder, an archive, a folder written by `pack_records`, or "
      "the address of a mirror. For `image_folder`, also the http or https address of one archive "
      "or RecordIO file. The file is downloaded and imported, and the download is then deleted. If "
      "the file at the address changes, the next run imports it again. A relative path starts at "
      "the folder of the file that contains it, or at the current folder if it is given with "
      "`--set` or `--sweep`. Default: the folder that the environment variable RUNNER_DATASETS "
      "names, then Debian's installation folder, then the official address. A published data set, "
      "such as `mnist`, that is in the cache already is not read from its source again. A folder "
      "written by `pack_records` is accepted for `dataset` if its records are those of that data "
      "set.");
  config.sourceSpan = reader.span("source");
  KJ_IF_MAYBE(place, config.source) {
    if (place->size() == 0) {
      reader.error("source", "`source` is empty", "name a folder or an archive, or leave it out");
    }
  }
  config.validationSource = reader.maybePath("validation_source",
      "For `image_folder`: a folder or an archive with the images for validation, or the address "
      "of one archive. The sub-folders must have the same class names as those of `source`, unless "
      "the images have their own labels, such as those in `validation_labels` or `labels.tsv`. "
      "Default: the images of `source` that `validation_labels` names. Without "
      "`validation_labels`: ILSVRC2012_img_val.tar, if `source` is a folder with the files of "
      "ILSVRC2012, and otherwise every tenth image of `source`.");
  config.validationSourceSpan = reader.span("validation_source");
  KJ_IF_MAYBE(place, config.validationSource) {
    bool isFolder = config.dataset->source->format == DatasetSource::FOLDER;
    if (!isFolder) {
      reader.error("validation_source",
          kj::str("the data set `", config.dataset->name, "` has its own validation images"),
          "leave `validation_source` out", {"dataset"_kj});
    } else if (place->size() == 0) {
      reader.error("validation_source", "`validation_source` is empty",
          "name a folder or an archive, or leave it out");
    } else if (!reader.has("source")) {
      reader.error("validation_source", "`validation_source` needs `source`",
          "set `source` to the training images");
    }
  }
}

// Reports settings of `augment` that do not fit the images of the data set, or other keys.
void checkAugment(configs::Reader& reader, const DataConfig& config) {
  auto& augment = config.augment;
  if (augment.resizes() && config.cache == DataCache::DEVICE) {
    reader.error("cache", "a GPU cannot resize crops of the images that it caches",
        "leave out `cache` or `augment.crop_area`", {"augment.crop_area"_kj});
  }
  if (config.cache == DataCache::DEVICE && (augment.colours.any() || augment.cutout > 0)) {
    reader.error("cache",
        "a GPU cannot change the colours of images that it caches, nor cut squares out of them",
        "leave out `cache`, or brightness, contrast, saturation, lighting and cutout of `augment`",
        {"augment.brightness"_kj, "augment.contrast"_kj, "augment.saturation"_kj,
            "augment.lighting"_kj, "augment.cutout"_kj});
  }
  if (augment.padMode != Padding::REFLECT && augment.pad == 0 &&
      !reachesOver(config.validationViews)) {
    reader.error("augment.pad_mode", "`pad_mode` has no effect without `pad`",
        "set `pad`, or leave `pad_mode` out", {"augment.pad"_kj, "validation_views"_kj});
  }
  auto& source = *config.dataset->source;
  auto stored = source.shape;
  if (stored.size() > 0) {
    if (config.resizeShortSide > 0) stored = resizedShape(stored, config.resizeShortSide);
    return check(reader, augment, stored);
  }
  // The import gives the images of folders three channels.
  uint channels = source.format == DatasetSource::FOLDER ? 3 : 1;
  if (!reader.isManual()) {
    checkNumbers(reader, augment, channels);
    checkColours(reader, augment.colours, channels);
  }
  if (augment.crop > 0) checkCutout(reader, augment, augment.crop);
  bool isCut = config.resizeShortSide > 0 && !augment.resizes();
  if (isCut && augment.crop > config.resizeShortSide + 2 * augment.pad) {
    reader.error("augment.crop",
        kj::str("`crop` is larger than the images, whose shorter side gets ",
            config.resizeShortSide, " pixels", paddingBeside(augment)),
        kj::str("make data.resize_short_side at least ", augment.crop - 2 * augment.pad),
        {"resize_short_side"_kj, "augment.pad"_kj});
  }
}

}  // namespace

constinit const kj::ArrayPtr<const configs::Word<Encoding>> ENCODINGS(ENCODING_ROWS);
constinit const kj::ArrayPtr<const configs::Word<kj::ArrayPtr<const View>>> VALIDATION_VIEWS(
    VALIDATION_VIEW_ROWS);
constinit const kj::ArrayPtr<const View> CENTRE_VIEW(CENTRE_ROWS);

DataConfig DataConfig::read(configs::Reader& reader) {
  DataConfig config;
  config.dataset = &reader.choose<DatasetKind>("dataset", "The data set to train on.", DATASETS);
  config.datasetSpan = reader.span("dataset");
  readSources(reader, config);
  readLabelFiles(reader, config);
  readClasses(reader, config);
  config.batchSize = reader.integer("batch_size", "Images per step and worker.", BATCH_SIZES, 128);
  config.batchSizeSpan = reader.span("batch_size");
  config.part = configs::chooseWord(
      reader, "part", "Which training records a worker reads.", TRAINING_PARTS, "split");
  config.order = configs::chooseWord(reader, "order",
      "The order in which a pass reads the training records.", RECORD_ORDERS, "shuffled");
  config.chunks = readChunks(reader, config.order);
  config.lastBatch = readLastBatch(reader);
  config.heldOut = reader.integer("held_out",
      "How many of the first training records are not used for training. The mean image still "
      "covers all records.",
      HELD_OUT, 0);
  config.heldOutSpan = reader.span("held_out");
  config.validateOn = configs::chooseWord(reader, "validate_on",
      "Which records are used for validation.", VALIDATION_SETS, "validation");
  if (config.validatesOnHeldOut() && config.heldOut == 0) {
    reader.error("validate_on",
        "`validate_on = \"held_out\"` needs training records that are held out",
        "set data.held_out, or leave `validate_on` out", {"held_out"_kj});
  }
  config.validation = configs::chooseWord(reader, "validation",
      "How validation images are divided among the workers.", VALIDATION_PARTS, "split");
  config.validationViews = configs::chooseWord(reader, "validation_views",
      "Which views of each validation image are computed. With several views, their logits are "
      "averaged, and loss and accuracy refer to that average. Each view takes one read and one "
      "forward pass.",
      VALIDATION_VIEW_ROWS, "centre");
  config.viewsAt = configs::chooseWord(reader, "validation_views_at",
      "Which validations of a run use `validation_views`.", VIEWS_AT, "every");
  auto readerThreads = reader.maybeInteger("reader_threads",
      "Threads per worker that read and decode images ahead of the steps. Their number does not "
      "change the batches. 0 = each step reads its own images. By default, a worker begins with 2 "
      "threads. While its steps wait for records, it adds threads, as long as each new thread "
      "shortens the wait.",
      READER_THREADS);
  config.readerThreads = readerThreads.orDefault(2);
  config.addsReaders = readerThreads == nullptr;
  config.encoding = configs::chooseWord(reader, "encoding",
      "How pixels are stored in the record database. The default for `image_folder` is \"jpeg\".",
      ENCODING_ROWS, configs::nameIn(ENCODINGS, config.dataset->source->encoding));
  config.resizeShortSide = reader.integer("resize_short_side",
      "Length to which the shorter side of each image is resized at import, in pixels, with "
      "bilinear interpolation. 0 = not resized.",
      SIDES, 0);
  config.onBadRecord = configs::chooseWord(reader, "on_bad_record",
      "What happens when a record cannot be read.", BAD_RECORD_POLICIES, "fail");
  readCache(reader, config);
  config.augment = reader.section(
      "augment", "What is done to each image before it enters a batch.", AugmentConfig::read);
  checkAugment(reader, config);
  return config;
}

}  // namespace io
