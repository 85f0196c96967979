// io/dataset_kinds.h: the table of data sets: names, files, checksums, addresses. datasets.h uses
// it.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

#include "io/image.h"

namespace io {

// One file inside a data set's archive or folder.
struct DatasetFile {
  const char* name;    // without its folder and without .gz
  size_t size;         // in bytes, extracted
  const char* sha256;  // of the extracted bytes; null: nobody has published it
};

// Where the files of a data set come from, and what they hold.
struct DatasetSource {
  enum Format { IDX, CIFAR, FOLDER } format;
  ImageShape shape = {0, 0, 0};  // of every image; all zero if images differ in shape
  uint classes = 0;              // 0: known after the import
  // The names of the classes, by label. Empty: the import finds them, or they have none.
  kj::ArrayPtr<const char* const> classNames = nullptr;
  uint64_t trainingRecords = 0;  // 0, as below: known after the import
  uint64_t validationRecords = 0;
  Encoding encoding;  // when the experiment does not say
  // IDX: training images, training labels, validation images, validation labels. CIFAR: the
  // training batches in their order, then the validation batch. Empty: the files of the user.
  kj::ArrayPtr<const DatasetFile> files = nullptr;
  // The paths to download, relative to a mirror or an official address. Empty: the data set cannot
  // be downloaded.
  kj::ArrayPtr<const char* const> downloads = nullptr;
  // Official addresses and well-known mirrors, in the order in which they are tried. Each ends in
  // '/'.
  kj::ArrayPtr<const char* const> addresses = nullptr;
  // How the name of an archive with the files begins ("cifar-10-binary.tar"), and the folder in
  // which the files lie when it is unpacked ("cifar-10-batches-bin"). Null: the data set has no
  // archive.
  const char* archivePrefix = nullptr;
  const char* archiveFolder = nullptr;
  // The sub-folder of $RUNNER_DATASETS that holds this data set.
  const char* folder;
  // The Debian package of the data set, and where it installs the files. Null: there is none.
  const char* systemPackage = nullptr;
  const char* systemFolder = nullptr;
  // CIFAR: how many labels of one byte each precede the pixels of an image. The import takes the
  // last one.
  uint labels = 1;

  // Whether the number and the shape of all images are known.
  bool isFixed() const { return trainingRecords > 0; }
  // Whether the images themselves are known: every file has a published checksum.
  bool isChecked() const {
    for (auto& file: files) {
      if (file.sha256 == nullptr) return false;
    }
    return isFixed();
  }
};

// A row of the table of data sets. The table is at the end of dataset_kinds.cc.
struct DatasetKind {
  const char* name;
  const char* doc;
  const DatasetSource* source;
};

extern const kj::ArrayPtr<const DatasetKind> DATASETS;

// Returns the names of its classes, by label, if the table has them.
kj::Array<kj::String> classNamesOf(const DatasetKind& kind);

}  // namespace io
