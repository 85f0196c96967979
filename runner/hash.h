// runner/hash.h: sha256 of bytes, for digests of experiments and weights.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

// 64 hexadecimal digits.
kj::String sha256(kj::ArrayPtr<const kj::byte> bytes);

}  // namespace runner
