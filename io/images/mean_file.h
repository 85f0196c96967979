// io/images/mean_file.h: the mean image of training records, which is kept in a file beside them.
#pragma once

#include "io/data_config.h"
#include "io/left_out.h"
#include "io/progress.h"
#include "io/records/record_db.h"

namespace io {

// The name of the file in the folder of the records.
constexpr kj::StringPtr MEAN_FILE = "mean.f32"_kj;

// Returns the mean of all images of `training`, which have one `shape`: C×H×W float32. Reads it
// from `folder` if that has it. Otherwise computes it and writes it there, unless the folder is
// read-only. Calls `warn` if writing fails. Several processes may do this at the same time.
//
// Throws if the file is damaged or belongs to other records, and as meanImageOf() does.
kj::Array<float> loadMeanImage(const DataConfig& config, const RecordDb& training,
    kj::StringPtr folder, ImageShape shape, Progress& progress, Warn& warn);

}  // namespace io
