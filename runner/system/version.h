// runner/system/version.h: what the program calls itself.
#pragma once

#include <kj/string.h>

namespace runner {

constexpr kj::StringPtr VERSION = "runner 0.1"_kj;

}  // namespace runner
