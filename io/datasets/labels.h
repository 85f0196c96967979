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
  bool met = false;  // set by the code that lists the images
  uint line = 0;     // in the file of labels; 0: the label is not from such a file
};

// Labels by the path of the image.
using Labels = kj::HashMap<kj::String, Label>;

// The file of labels in an image folder, in an archive, or beside an archive.
constexpr kj::StringPtr LABELS_FILE = "labels.tsv"_kj;
constexpr size_t LABELS_FILE_BYTES_MAX = size_t(1) << 30;

// The content of a file of labels.
struct LabelList {
  Labels labels;
  kj::Array<kj::String> classNames;  // by label; "" if unknown. Empty if the file names no class
};

// Reads a file with one image per line, in one of these forms:
//
//   path<TAB>label<TAB>…           If the first line is `#path<TAB>label<TAB>…` and has a column
//                                  `name`, that column names the class. Other columns are ignored.
//   index<TAB>label<TAB>path       in a file whose name ends in .lst, as MXNet's im2rec writes it
//   path label                     as Caffe's lists have it
//
// A label is a whole number; `3.000000` is one, too. A `./` before a path is ignored. Other lines
// that begin with '#' are comments. Throws with file and line if anything else is in the file, or
// if two lines name the same path.
LabelList readLabels(kj::StringPtr path);

// The same for the content of such a file. Errors call it `file`. Each path gets `folder` before
// it, which is "" or ends in '/'.
LabelList parseLabels(
    kj::StringPtr file, kj::ArrayPtr<const kj::byte> content, kj::StringPtr folder);

// Returns a label from a file that consists of this number, as in WebDataset's `.cls`. Null if the
// text is not a label.
kj::Maybe<uint32_t> parseLabel(kj::ArrayPtr<const char> text);

// Reads the names of classes: one line per class, by label. `folders` are those of the classes by
// label, or empty. A line may begin with the name of such a folder, as `n01440764 tench, Tinca
// tinca` in ImageNet's synset_words.txt. If every folder has such a line, the folders decide which
// name belongs to which label, and other lines are ignored. Throws with file and line.
kj::Array<kj::String> readClassNames(kj::StringPtr path, kj::ArrayPtr<const kj::String> folders);

// Returns names for classes that are folders: their last names, or if these are not unique, their
// paths.
kj::Array<kj::String> namesOfFolders(kj::ArrayPtr<const kj::String> folders);

// Labels images by folder. The folders that hold images, sorted by path, are classes 0, 1, ….
// `paths` are those of all images of `images`, a folder or an archive. Throws if there is only one
// folder. Throws if the images are split into folders for training and validation, which would
// become classes. Throws if some images are beside the folders of all others.
Labels labelsByFolder(const DataConfig& config, kj::StringPtr images, kj::Array<kj::String> paths);

// Labels images by folder, with the labels of other images, such as the training images. `classes`
// are the folders of those images, by label. A folder is the class of the same path, or else the
// only class of the same last name. Throws if there is no such class.
Labels labelsByKnownFolder(
    kj::StringPtr images, kj::Array<kj::String> paths, kj::ArrayPtr<const kj::String> classes);

}  // namespace io
