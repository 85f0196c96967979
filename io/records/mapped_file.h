// io/records/mapped_file.h: files mapped to be read.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace io {

// The content of the file at `path`, mapped for as long as the result lives. Throws a clause
// without the path.
//
// Nobody may write to the file meanwhile. If it becomes shorter, or its disk fails, a read of what
// is missing cannot return: it ends the process with exit status 1 and the line `error: LOST` on
// stderr. For that the first call installs a handler of SIGBUS. It leaves every other SIGBUS to the
// handler that was there before.
kj::Array<const kj::byte> mapFile(kj::StringPtr path, kj::StringPtr lost);

}  // namespace io
