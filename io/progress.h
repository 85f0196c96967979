// io/progress.h: how an import tells how far it is.
#pragma once

#include <kj/function.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

// Told now and then while something long goes on ("downloading cifar-10-binary.tar.gz, bytes",
// 12000000, 170052171; total 0 = unknown). Units are in `what`.
using Progress = kj::Function<void(kj::StringPtr what, uint64_t done, uint64_t total)>;

}  // namespace io
