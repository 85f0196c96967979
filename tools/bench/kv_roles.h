// tools/bench/kv_roles.h: the work inside the processes of `bench kvstore`.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "tools/bench/kv_case.h"

namespace tools {

// Runs the role that `words` name (see wordsOf()) until the bench ends it.
void runKvRole(kj::ArrayPtr<const kj::StringPtr> words);

// Measures the limit, as PROBE and ECHO.
void runProbe(const KvRole& role);
void runEcho(const KvRole& role);
// Returns the size of the file that a PROBE and an ECHO over MEMORY share, for `floats` floats.
uint64_t sharedBytes(uint64_t floats);

}  // namespace tools
