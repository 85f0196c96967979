// rpc/codec/one_bit_compression.h: one bit per value (Seide et al. 2014, "1-Bit Stochastic Gradient
// Descent").
#pragma once

#include "rpc/codec/compression.h"

namespace configs {
class Reader;
}

namespace rpc::codec {

// How many values share two means.
constexpr uint64_t ONE_BIT_GROUP = 512;

// The values of a slice are divided into groups, of which the last may be smaller. A group has the
// mean of its values below 0 and the mean of the others, as float32. Then it has one bit per value,
// 0 if the value is below 0, in as many 4-byte words as needed. The first value has the lowest bit
// of the first word. Bits behind the last value are 0.
extern const EncodingKind ONE_BIT;

// Reads the keys of this compression. r is zero initially. Each step: r ← r + g; the bit of r is
// sent; r ← r - the mean that arrives for it. Therefore the sum of all gradients equals the sent
// values plus the kept ones, except for rounding. Keeps 4 bytes per value.
kj::Own<const Compression> readOneBit(configs::Reader& reader);

}  // namespace rpc::codec
