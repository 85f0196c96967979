// io/dataset_kinds.h: the table of data sets: names, files, checksums, addresses. What is done with
// it: datasets.h.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include "io/image.h"

namespace io {

// One file inside a data set's archive or folder.
struct DatasetFile {
  const char* name;    // without folders and without .gz
  size_t size;         // bytes, extracted
  const char* sha256;  // of the extracted bytes
};

// Where the files of a data set come from and what is in them.
struct DatasetSource {
  enum Format { IDX, CIFAR, FOLDER } format;
  ImageShape shape;  // of every image; all zero where images differ
  uint classes;      // 0 = known after the import
  uint64_t trainingRecords;
  uint64_t validationRecords;
  Encoding encoding;  // when the experiment does not say
  // IDX: training images, training labels, validation images, validation labels.
  // CIFAR: the training batches in their order, then the validation batch.
  kj::ArrayPtr<const DatasetFile> files;
  // What to ask a mirror or an official address for, relative to it; nothing = cannot be
  // downloaded.
  kj::ArrayPtr<const char* const> downloads;
  // Official addresses and well-known mirrors, each ending in '/', in the order they are tried.
  kj::ArrayPtr<const char* const> addresses;
  // What the name of an archive that holds the files begins with, and the folder inside it; null =
  // there is none.
  const char* archivePrefix;
  const char* archiveFolder;
  // Sub-folder of a folder of data sets ($RUNNER_DATASETS) that holds this one.
  const char* folder;
  // Debian's package of it, and where that puts it; null = there is none.
  const char* systemPackage;
  const char* systemFolder;
};

// A row of the table of data sets; the table stands at the foot of dataset_kinds.cc.
struct DatasetKind {
  const char* name;
  const char* doc;
  const DatasetSource* source;
};

extern const kj::ArrayPtr<const DatasetKind> DATASETS;

}  // namespace io
