// io/fetch.h: downloads a file, with progress.
#pragma once

#include <kj/common.h>
#include <kj/function.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

// Told now and then while something long goes on ("downloading cifar-10-binary.tar.gz, bytes",
// 12000000, 170052171; total 0 = unknown). Units are in `what`.
using Progress = kj::Function<void(kj::StringPtr what, uint64_t done, uint64_t total)>;

// Downloads `address` (http, https, file; by libcurl, redirections followed) into the new file
// `path`. Throws if the address is not there, sends more than `bytesMax`, or nothing for a minute;
// then there is no file.
void download(kj::StringPtr address, kj::StringPtr path, uint64_t bytesMax, Progress& progress);

// Whether `source` is an address rather than a path.
bool isAddress(kj::StringPtr source);

}  // namespace io
