// io/datasets/fetch.h: downloads a file, with progress.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

#include "io/progress.h"

namespace io {

// Downloads `address` (http, https, file; by libcurl, redirections followed) into the new file
// `path`. Throws if the address is not there, sends more than `bytesMax`, or nothing for a minute;
// then there is no file.
void download(kj::StringPtr address, kj::StringPtr path, uint64_t bytesMax, Progress& progress);

// Whether `source` is an address rather than a path.
bool isAddress(kj::StringPtr source);

}  // namespace io
