// io/testing/mat_file.h: writes the table of ImageNet's development kit for tests.
#pragma once

#include <kj/array.h>
#include <kj/common.h>
#include <kj/string.h>

namespace io {

// A class in the kit's table.
struct Synset {
  double id;
  kj::StringPtr folder;
  kj::StringPtr words;
};

// Returns a MAT-file with the struct array `synsets`, whose fields are those of the kit's readme.
// `isPacked`: compressed, as MATLAB writes it.
kj::Array<kj::byte> matFileOf(kj::ArrayPtr<const Synset> synsets, bool isPacked);

}  // namespace io
