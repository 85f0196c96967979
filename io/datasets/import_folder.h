// io/datasets/import_folder.h: makes record databases from a folder or an archive of images, or
// from a RecordIO file.
#pragma once

#include "io/data_config.h"
#include "io/datasets/bad_images.h"
#include "io/datasets/sources.h"
#include "io/left_out.h"
#include "io/progress.h"
#include "io/records/record_db.h"

namespace io {

// Whether an import reads files of this name in a folder: images, labels of samples, and archives.
bool isNamedForImport(kj::StringPtr path);

// Writes the images of `place` in their order: every tenth into `validation`, the others into
// `training`. With `validationPlace`, writes all of them into `training`, and all of
// `validationPlace` into `validation`. If folders are classes, a folder of `validationPlace` is the
// same class as the folder of that name in `place`. Ids count the images of both. The path of its
// file is stored with each record. Returns the names of the classes by label, or none if they are
// not known.
//
// If there is no image in `place`, but archives, the images of these are imported, as if each
// archive were a folder (see nested_archives.h).
//
// If an archive has several entries of one name, the last one counts, as for tar. `warn` reports
// this.
//
// `config.onBadRecord` decides about a file that is not a good image: either an exception is
// thrown, or the file is left out and `warn` names it. Entries that are not files are named and
// left out. Throws if a labelled image is missing, if an image has no label, if an archive has two
// files of labels, or if there is no image at all. Also throws as labelsByFolder() does. These
// checks, also those of the validation images, come before the first image is read.
//
// Images that the writers have kept from a killed process, or that the killed process has noted in
// `badImages`, are not imported again. The result is the same as if it had not been killed.
kj::Array<kj::String> importFolder(const DataConfig& config, const ImagePlace& place,
    const kj::Maybe<ImagePlace>& validationPlace, RecordWriter& training, RecordWriter& validation,
    BadImages& badImages, Progress& progress, Warn& warn);

}  // namespace io
