// io/datasets/archive_end.h: checks that a tar or a gzip file is complete. libarchive does not.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

// Throws unless the archive at `path`, whose entries were all read, is complete. A gzip file is not
// if its checksum is wrong. A tar is not if it has no end mark, or data after it. `tarEnd` is where
// the entries of a tar end, counted in unpacked bytes; null for other formats. `isPacked`: the file
// is compressed, and all of it is read once more.
void checkEnd(kj::StringPtr path, kj::Maybe<uint64_t> tarEnd, bool isPacked);

}  // namespace io
