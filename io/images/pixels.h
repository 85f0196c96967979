// io/images/pixels.h: the pixels of records in any encoding, and their mean.
#pragma once

#include <kj/function.h>

#include "io/image.h"
#include "io/images/jpeg.h"
#include "io/progress.h"
#include "io/records/record_db.h"

namespace io {

// Returns the pixels of `record`. They are valid as long as the record, and until the next use of
// `decoder`. Throws if the record is a JPEG file that cannot be decoded.
ImageView pixelsOf(const Record& record, JpegDecoder& decoder);

// Reads all images of `db`, which have one shape, in order. Calls `take` with as many images at a
// time as fit into `buffer`, as N×C×H×W bytes from record `first` on. They are valid until `take`
// returns. `buffer` must have room for one image. Returns the labels of all records. Throws if a
// record is bad.
kj::Array<int32_t> readImages(const RecordDb& db, kj::ArrayPtr<kj::byte> buffer,
    kj::FunctionParam<void(uint64_t first, kj::ArrayPtr<const kj::byte> images)> take);

// Returns the sentence about an intact record whose image cannot be used: badRecord()'s sentence,
// and what to do. `problem` is the exception about it, whose text begins with a verb.
kj::String badImage(
    const RecordDb& db, uint64_t index, const Record& record, const kj::Exception& problem);

// Returns the sentence about a record whose image is smaller than data.augment.crop, and what to
// do. The record is good, but the setting does not fit it.
kj::String tooSmall(const RecordDb& db, uint64_t index, const Record& record, uint crop);

// Follows a sentence about a bad record if such records end the run.
constexpr kj::StringPtr OR_SKIP = ", or set data.on_bad_record = \"skip\""_kj;

// Returns the mean of all images of `db`, C×H×W: sums of integers, divided in double, rounded once.
// Throws if `db` is empty or its images differ in shape. With `policy` SKIP, leaves out records
// that cannot be read. Otherwise throws. `skip` is the advice on how to leave them out.
kj::Array<float> meanImageOf(const RecordDb& db, BadRecordPolicy policy, Progress& progress,
    kj::StringPtr skip = SettingNames().skip);

}  // namespace io
