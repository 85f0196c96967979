// io/datasets/labels.h: which class each image of a folder or an archive belongs to.
#pragma once

#include <kj/array.h>
#include <kj/map.h>
#include <kj/string.h>

#include <cstdint>

#include "io/data_config.h"

namespace io {

// The class of an image.
struct Label {
  uint32_t number;
  bool met = false;  // set by the code that goes through the images
};

// Labels by the path of the image.
using Labels = kj::HashMap<kj::String, Label>;

// The file of labels in an image folder, in an archive, or beside an archive.
constexpr kj::StringPtr LABELS_FILE = "labels.tsv"_kj;
constexpr size_t LABELS_FILE_BYTES_MAX = size_t(1) << 30;

// Reads a file of lines `path<TAB>label`; further columns are ignored. A `./` before a path is
// ignored. Lines that begin with '#' are comments. Throws with file and line if anything else is in
// the file.
Labels readLabels(kj::StringPtr path);

// The same for the content of such a file. Errors call it `file`. Each path gets `folder` before
// it, which is "" or ends in '/'.
Labels parseLabels(kj::StringPtr file, kj::ArrayPtr<const kj::byte> content, kj::StringPtr folder);

// Labels images by folder. The folders that hold images, sorted by path, are classes 0, 1, ….
// `paths` are those of all images of `images`, a folder or an archive. Throws if there is only one
// folder. Throws if the images are split into folders for training and validation, which would
// become classes. Throws if some images lie beside all the folders of the others.
Labels labelsByFolder(const DataConfig& config, kj::StringPtr images, kj::Array<kj::String> paths);

// Labels images by folder, with the numbers that `classes` (folders, by label) have for others: a
// folder is the class of the same path, or else the only one of the same last name. Throws if there
// is no such class.
Labels labelsByKnownFolder(
    kj::StringPtr images, kj::Array<kj::String> paths, kj::ArrayPtr<const kj::String> classes);

}  // namespace io
