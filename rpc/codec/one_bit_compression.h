// rpc/codec/one_bit_compression.h: one bit per value (Seide et al. 2014, "1-Bit Stochastic Gradient
// Descent").
#pragma once

#include "rpc/codec/compression.h"

namespace configs {
class Reader;
}

namespace rpc::codec {

// The values that share two means.
constexpr uint64_t ONE_BIT_GROUP = 512;

// For each group of a slice's values, of which the last may be smaller: the mean of those below 0
// and the mean of the others, as float32; then a bit for each value, 1 if it is among the others.
// The first value has the lowest bit of the first of as many 4-byte words as are needed. Bits
// behind the last value are 0.
extern const EncodingKind ONE_BIT;

// With r zero at first: r ← r + g; r is sent as its bit; r ← r - the mean that arrives for it. So
// what was sent and what is kept are the sum of all gradients, but for rounding. Keeps 4 bytes per
// value.
kj::Own<const Compression> readOneBit(configs::Reader& reader);

}  // namespace rpc::codec
