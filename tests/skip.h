// tests/skip.h: skips a test at run time if it cannot run here (no data set, not root).
#pragma once

#include <cstdio>

// Defined in programs that --config=asan builds.
extern "C" __attribute__((weak)) void __asan_init();

namespace tests {

inline bool hasAddressSanitizer() {
  return &__asan_init != nullptr;
}

}  // namespace tests

// Prints the line that test.sh counts as a skipped case, and leaves the case. doctest counts such a
// case as passed, so test.sh subtracts the skipped cases from the passed ones.
#define SKIP_CASE(reason)                        \
  do {                                           \
    std::printf("SKIPPED CASE: %s\n", (reason)); \
    std::fflush(stdout);                         \
    return;                                      \
  } while (false)
