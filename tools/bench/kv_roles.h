// tools/bench/kv_roles.h: the processes of `bench kvstore`, from inside.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "tools/bench/kv_case.h"

namespace tools {

// Is the role that `words` name (see wordsOf()) until the bench lets it go.
void runKvRole(kj::ArrayPtr<const kj::StringPtr> words);

// The limits: PROBE and ECHO.
void runProbe(const KvRole& role);
void runEcho(const KvRole& role);
// Of the file that a PROBE and an ECHO over MEMORY share, for so many floats.
uint64_t sharedBytes(uint64_t floats);

}  // namespace tools
