// io/datasets/archive_end.h: whether a tar or a gzip file is whole, which libarchive does not
// check.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

// Throws unless the archive at `path`, whose entries were all read, is whole: if the checksum of a
// gzip file is wrong, or if a tar has no end mark or has data behind it. `tarEnd` is where the
// entries of a tar end, counted in unpacked bytes; null for other formats. `isPacked` says whether
// the file is compressed: then all of it is read once more.
void checkEnd(kj::StringPtr path, kj::Maybe<uint64_t> tarEnd, bool isPacked);

}  // namespace io
