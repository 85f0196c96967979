// io/images/mean_file.h: the mean image of training records, kept in a file beside them.
#pragma once

#include "io/data_config.h"
#include "io/left_out.h"
#include "io/progress.h"
#include "io/records/record_db.h"

namespace io {

// Its name, in the folder of the records.
constexpr kj::StringPtr MEAN_FILE = "mean.f32"_kj;

// The mean of all images of `training`, which have one `shape`: C×H×W float32. Reads it from
// `folder` if it is there. Otherwise computes it and, unless the folder is read-only, keeps it
// there; `warn` is told if that fails. Several processes may do so at once.
//
// Throws if the file there is damaged or belongs to other records, and as meanImageOf() does.
kj::Array<float> loadMeanImage(const DataConfig& config, const RecordDb& training,
    kj::StringPtr folder, ImageShape shape, Progress& progress, Warn& warn);

}  // namespace io
