// io/datasets/labels.h: which class each image of a folder or an archive belongs to.
#pragma once

#include <kj/array.h>
#include <kj/map.h>
#include <kj/string.h>

#include <cstdint>

#include "io/data_config.h"

namespace io {

struct Label {
  uint32_t number;
  bool met = false;  // for whoever goes through the images
};

// By the path of the image.
using Labels = kj::HashMap<kj::String, Label>;

// The file of labels that lies in an image folder, in an archive, or beside an archive.
constexpr kj::StringPtr LABELS_FILE = "labels.tsv"_kj;
constexpr size_t LABELS_FILE_BYTES_MAX = size_t(1) << 30;

// Reads a file of lines `path<TAB>label`, with more columns at will. A `./` before a path says
// nothing. Lines that begin with '#' are comments. Throws with file and line over anything else.
Labels readLabels(kj::StringPtr path);

// The same for the content of such a file. Errors name it `file`. Each path gets `folder` before
// it, which is "" or ends in '/'.
Labels parseLabels(kj::StringPtr file, kj::ArrayPtr<const kj::byte> content, kj::StringPtr folder);

// Labels by folder: the folders that hold images, sorted by path, are classes 0, 1, …. `paths` are
// those of all images of `images`, a folder or an archive. Throws if there is one folder only, if
// they are split into folders for training and validation, which would become classes, or if some
// lie beside all the folders of the others.
Labels labelsByFolder(const DataConfig& config, kj::StringPtr images, kj::Array<kj::String> paths);

}  // namespace io
