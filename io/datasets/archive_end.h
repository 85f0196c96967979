// io/datasets/archive_end.h: checks that a tar or a gzip file is complete. libarchive does not.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

// Throws unless the archive at `path` is complete. The caller has read all of its entries. A gzip
// file is incomplete if its checksum is wrong. A tar is incomplete if it has no end mark, or if
// data follow the end mark. `tarEnd` is where the entries of a tar end, counted in unpacked bytes;
// null for other formats. `isPacked` says that the file is compressed. It is then read once more as
// a whole.
void checkEnd(kj::StringPtr path, kj::Maybe<uint64_t> tarEnd, bool isPacked);

}  // namespace io
