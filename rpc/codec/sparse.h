// rpc/codec/sparse.h: encodings that name the positions of values, so that zeros can be left out.
// Pure.
#pragma once

#include "rpc/codec/encoding.h"

namespace rpc::codec {

// A payload of both encodings has a header of 8 bytes, then the values, then their positions
// (positions.h). The header has the form of the positions, three zero bytes, and the number of
// values in 4 bytes.

// Has the values that are not 0, each encoded as `numbers`.
extern const EncodingKind SPARSE;
// Has multiples m·unit with -most ≤ m ≤ most. Other values cannot be encoded. The multiples are
// written as digits m + most to the base 2·most + 1. If zeros are left out, the base is 2·most, and
// the digits are m + most (m < 0) and m + most - 1 (m > 0).
extern const EncodingKind MULTIPLES;

// Makes a payload of SPARSE with only the values at these positions, which must ascend.
Bytes encodeAt(
    kj::ArrayPtr<const uint32_t> positions, Number numbers, Floats values, Buffer& buffer);

}  // namespace rpc::codec
