// io/datasets/sources.h: finds the files of a data set: on the disk, else at a mirror or the
// official address.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "io/data_config.h"
#include "io/progress.h"

namespace io {

// The files of a data set of fixed content, in the order of its table row, unpacked, each with the
// size and checksum that the row says. Looked for
//
// 1. in `config.source`, if given: a folder with the files (packed by gzip or not) or with their
// archive,
//    the folder above it, an archive, or the address of a mirror of such a folder; nowhere else
//    then;
// 2. in the folder `datasets` ($RUNNER_DATASETS), if given;
// 3. where Debian installs them;
// 4. at the official addresses. Downloads go to `downloads`, a folder.
//
// Throws if they are nowhere, naming the places, or if one is damaged.
//
// Of `config` only the data set, the source and the names of settings are read.
kj::Array<kj::Array<kj::byte>> findFiles(const DataConfig& config,
    kj::Maybe<kj::StringPtr> datasets, kj::StringPtr downloads, Progress& progress);

// Throws as findFiles() does if `config.source` is a path where nothing is. Says nothing of the
// images of an image folder: see findImages().
void requireSourcePlace(const DataConfig& config);

// Where the images of an image folder are.
struct ImagePlace {
  kj::String images;             // a folder or an archive
  kj::Maybe<kj::String> labels;  // the file of labels in the folder or beside the archive, if any
};

// Looks at `config.source`, else at the row's folder in `datasets`. A folder that holds one archive
// and `labels.tsv` means that archive; `labels.tsv` may lie in the folder, or beside the archive.
// Throws if there is nothing.
ImagePlace findImages(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets);

}  // namespace io
