// io/datasets/sources.h: finds the files of a data set: on the disk, at a mirror, or at the
// official address.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "io/data_config.h"
#include "io/progress.h"

namespace io {

// Returns the files of a data set of fixed content, in the order of its table row. They are
// unpacked, and each has the size and checksum of the row. Looks for them in these places:
//
//   1. `config.source`, if given: a folder with the files (compressed by gzip or not) or with
//      their archive, the folder above it, an archive, or the address of a mirror of such a
//      folder. The other places are then not used.
//   2. the folder `datasets` ($RUNNER_DATASETS), if given.
//   3. the folder where Debian installs them.
//   4. the official addresses.
//
// Downloads go to the folder `downloads`. Throws if the files are in none of these places, naming
// the places, or if one is damaged.
//
// Reads only the data set, the source and the names of settings from `config`.
kj::Array<kj::Array<kj::byte>> findFiles(const DataConfig& config,
    kj::Maybe<kj::StringPtr> datasets, kj::StringPtr downloads, Progress& progress);
// Returns the paths of the files, or of the archive, that findFiles() would read. Empty if it would
// download them, or would find nothing.
kj::Array<kj::String> findLocalFiles(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets);

// For data sets of the user in MNIST's format: returns the paths of the training images, training
// labels, validation images and validation labels. They are in `config.source`, or else in the
// row's folder in `datasets`. Throws if one is missing or ambiguous.
kj::Array<kj::String> findIdxFiles(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets);
// Returns their content, unpacked.
kj::Array<kj::Array<kj::byte>> readIdxFiles(
    const DataConfig& config, kj::Maybe<kj::StringPtr> datasets);

// Throws as findFiles() does if `config.source` is a path to nothing. Does not check the images of
// an image folder: see findImages().
void requireSourcePlace(const DataConfig& config);

// The files of ILSVRC2012, as they are downloaded.
constexpr kj::StringPtr ILSVRC_TRAINING = "ILSVRC2012_img_train.tar"_kj;
constexpr kj::StringPtr ILSVRC_VALIDATION = "ILSVRC2012_img_val.tar"_kj;
constexpr kj::StringPtr ILSVRC_DEVKIT = "ILSVRC2012_devkit_t12.tar.gz"_kj;

// The place of the images of an image folder.
struct ImagePlace {
  // A folder, an archive or a RecordIO file, or the address of one of these files.
  kj::String images;
  kj::Maybe<kj::String> labels;  // the file of labels, or null
  // ILSVRC2012's development kit, which labels the images, or null. See ilsvrc.h.
  kj::Maybe<kj::String> kit;
  // Whether `labels` selects images: all images that it does not name are left out.
  bool isChosen = false;
};

// Looks at `config.source`, or else at the row's folder in `datasets`. A folder that holds one
// archive and `labels.tsv` means that archive. `labels.tsv` may lie in the folder, or beside the
// archive, but not at an address. `config.labels` replaces it. A folder with the training images of
// ILSVRC2012, as they are downloaded, means these. Throws if there is nothing.
ImagePlace findImages(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets);
// Looks at `config.validationSource` and `config.validationLabels` in the same way. If the
// configuration has neither, returns the validation images of ILSVRC2012 if they lie beside its
// training images, and null otherwise.
kj::Maybe<ImagePlace> findValidationImages(
    const DataConfig& config, kj::Maybe<kj::StringPtr> datasets);

}  // namespace io
