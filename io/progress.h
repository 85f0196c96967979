// io/progress.h: how an import reports its progress.
#pragma once

#include <kj/function.h>
#include <kj/string.h>

#include <cstdint>

namespace io {

// Called from time to time during long work ("downloading cifar-10-binary.tar.gz, bytes", 12000000,
// 170052171). A total of 0 means unknown. `what` names the unit.
using Progress = kj::Function<void(kj::StringPtr what, uint64_t done, uint64_t total)>;

// Returns a function that ignores the reports.
inline Progress unheard() {
  return [](kj::StringPtr, uint64_t, uint64_t) {};
}

// Work on many records reports its progress once per this number of records.
constexpr uint64_t RECORDS_PER_REPORT = 1000;

}  // namespace io
