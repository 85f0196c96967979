// io/testing/archive_files.h: writes and reads small archives for tests.
#pragma once

#include <archive.h>
#include <kj/array.h>
#include <kj/string.h>

namespace io {

// Writes an archive with the files `names`. The content of each is its name.
void writeArchive(kj::StringPtr path, int (*filter)(struct archive*),
    int (*format)(struct archive*), kj::ArrayPtr<const kj::StringPtr> names);

// Writes a tar of `entries`. Each is a name and then its kind: `=content`, `>target` of a symbolic
// link, `+target` of a hard link, `|` of a pipe.
void writeTar(kj::StringPtr path, kj::ArrayPtr<const kj::StringPtr> entries);

// Returns an uncompressed zip of files that each hold their own name (PKWARE's APPNOTE 6.3). `utf8`
// sets the flag that marks names as UTF-8. libarchive's writer would not set it for other bytes.
kj::Array<kj::byte> zipOf(kj::ArrayPtr<const kj::StringPtr> names, bool utf8);

// Returns `name=content` of each of the Members of `path`, in order.
kj::String contents(kj::StringPtr path);

}  // namespace io
