// rpc/codec/two_bit_compression.h: MXNet's two bits per value.
#pragma once

#include "rpc/codec/compression.h"

namespace configs {
class Reader;
}

namespace rpc::codec {

// 2 bits per value: ±unit or 0; see Loops::toTwoBit.
extern const EncodingKind TWO_BIT;

// With r zero at first: r ← r + g; codes of r are sent, and what they stand for is taken off r. So
// what was sent and what is kept are the sum of all gradients. Keeps 4 bytes per value.
kj::Own<const Compression> readTwoBit(configs::Reader& reader);

// A threshold as it is used, with 12 significant bits: so sums of up to 4096 codes are exact, and
// do not depend on their order.
float usedThreshold(double threshold);

}  // namespace rpc::codec
