// io/records/mapped_file.h: maps files for reading.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace io {

// Returns the content of the file at `path`, which stays mapped as long as the result lives. Throws
// if the file cannot be mapped. The description is a clause without the path ("the file is empty").
//
// Nobody may write to the file meanwhile. If it becomes shorter or its disk fails, reading the
// missing part cannot return. The process then ends with exit code 1 and prints `error: LOST` on
// stderr. For this, the first call installs a handler of SIGBUS. It passes every other SIGBUS on to
// the previous handler.
kj::Array<const kj::byte> mapFile(kj::StringPtr path, kj::StringPtr lost);

}  // namespace io
