// rpc/codec/sparse.h: encodings with the positions of values, so that zeros can be left out. Pure.
#pragma once

#include "rpc/codec/encoding.h"

namespace rpc::codec {

// A payload of these is 8 bytes (the form of the positions; three zeros; how many values there are,
// in 4 bytes), then the values, then their positions (positions.h).

// The values that are not 0, as `numbers` says.
extern const EncodingKind SPARSE;
// m·unit with -most ≤ m ≤ most, and nothing else can be encoded. Digits m + most of base
// 2·most + 1, or where zeros are left out m + most (m < 0) and m + most - 1 (m > 0) of base 2·most.
extern const EncodingKind MULTIPLES;

// A payload of SPARSE, of the values at these positions alone, which ascend.
Bytes encodeAt(
    kj::ArrayPtr<const uint32_t> positions, Number numbers, Floats values, Buffer& buffer);

}  // namespace rpc::codec
