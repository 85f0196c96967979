// io/datasets/nested_archives.h: the files in archives within a folder or another archive.
#pragma once

#include "io/datasets/archives.h"

namespace io {

// Iterates over a folder or an archive as Members::open(path) does. Each archive in it counts as a
// folder of its name without the ending: `n01440764.tar` is the folder `n01440764`. Archives in
// these archives are files. ImageNet's tar of tars can be read in this way, and so can folders of
// shards.
//
// An archive in another one is read into memory before it is opened. next() throws if it has more
// than NESTED_BYTES_MAX bytes.
kj::Own<Members> openNested(kj::StringPtr path);

constexpr size_t NESTED_BYTES_MAX = size_t(1) << 30;

}  // namespace io
