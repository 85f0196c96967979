// io/datasets/mat_file.h: reads tables from MATLAB files, such as the one in ImageNet's development
// kit.
#pragma once

#include <kj/array.h>
#include <kj/map.h>
#include <kj/string.h>

namespace io {

// A row of a struct array. Fields that are neither a text nor a number are left out.
struct MatRow {
  kj::HashMap<kj::String, kj::String> texts;
  kj::HashMap<kj::String, double> numbers;  // of an array: its first one
};

// Returns the rows of the struct array `name` in a MAT-file of level 5 (MathWorks, "MAT-File
// Format", 2022), compressed or not. Throws if the file is damaged or has no such array. The text
// begins with a verb.
kj::Array<MatRow> matTable(kj::ArrayPtr<const kj::byte> file, kj::StringPtr name);

}  // namespace io
