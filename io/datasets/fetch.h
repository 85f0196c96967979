// io/datasets/fetch.h: downloads a file, with progress.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

#include <cstdint>

#include "io/progress.h"

namespace io {

// Downloads `address` (http, https, file; by libcurl, following redirections) into the new file
// `path`. Throws if there is nothing at the address, if it sends more than `bytesMax`, or if it
// sends nothing for a minute. Leaves no file then.
void download(kj::StringPtr address, kj::StringPtr path, uint64_t bytesMax, Progress& progress);

// Whether `source` is an address rather than a path.
bool isAddress(kj::StringPtr source);

}  // namespace io
