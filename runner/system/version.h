// runner/system/version.h: the program's name and version.
#pragma once

#include <kj/string.h>

namespace runner {

constexpr kj::StringPtr VERSION = "runner 0.1"_kj;

}  // namespace runner
