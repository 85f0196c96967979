// io/images/pixels.h: the pixels of records, however they are kept, and their mean.
#pragma once

#include <kj/function.h>

#include "io/image.h"
#include "io/images/jpeg.h"
#include "io/progress.h"
#include "io/records/record_db.h"

namespace io {

// The pixels of `record`; valid as long as the record, and until the next use of `decoder`. Throws
// if it is a JPEG file that cannot be decoded.
ImageView pixelsOf(const Record& record, JpegDecoder& decoder);

// Reads all images of `db`, which have one shape, in order, and hands them on as planes, as many at
// once as `buffer` takes: N×C×H×W from record `first` on. Returns their labels. Throws over a bad
// record.
kj::Array<int32_t> readImages(const RecordDb& db, kj::ArrayPtr<kj::byte> buffer,
    kj::FunctionParam<void(uint64_t first, kj::ArrayPtr<const kj::byte> images)> take);

// The sentence on a record whose image is of no use, though it is stored as it came: badRecord()'s
// and the way out. `problem` is what was thrown over it, which begins with a verb.
kj::String badImage(
    const RecordDb& db, uint64_t index, const Record& record, const kj::Exception& problem);

// The sentence on a record whose image is smaller than data.augment.crop, and the way out. The
// record is good: the setting does not fit it.
kj::String tooSmall(const RecordDb& db, uint64_t index, const Record& record, uint crop);

// What may follow a sentence on a bad record where such records end the run.
constexpr kj::StringPtr OR_SKIP = ", or set data.on_bad_record = \"skip\""_kj;

// The mean of all images of `db`, C×H×W: sums of integers, divided in double, rounded once. Throws
// if `db` is empty or its images differ in shape. With `policy` SKIP a record that cannot be read
// is left out; otherwise `skip` is the advice how to do that.
kj::Array<float> meanImageOf(const RecordDb& db, BadRecordPolicy policy, Progress& progress,
    kj::StringPtr skip = SettingNames().skip);

}  // namespace io
