// io/datasets/import.h: makes record databases from the files of a data set.
#pragma once

#include <kj/string.h>

#include "io/data_config.h"
#include "io/datasets/remote_images.h"
#include "io/left_out.h"
#include "io/progress.h"

namespace io {

// The names of the files in a folder of packed records.
constexpr kj::StringPtr TRAINING_FILE = "training.mdb"_kj;
constexpr kj::StringPtr VALIDATION_FILE = "validation.mdb"_kj;

// Finds the files of the data set of `config` (see sources.h), or downloads them. Writes its
// training and validation records into the existing folder `into`, with `config.encoding` and
// `config.resizeShortSide`. Ids count the images of each database in their original order. Those of
// an image folder count over both (see import_folder.h, also for `warn`). Images that a killed
// process has written into `into` already are kept. The images of an image folder may lie at the
// addresses of `remote`: see lookUpFiles(). Downloads stay in `into`.
void importDataset(const DataConfig& config, kj::Maybe<kj::StringPtr> datasets,
    kj::ArrayPtr<const RemoteFile> remote, kj::StringPtr into, Progress& progress, Warn& warn);

}  // namespace io
