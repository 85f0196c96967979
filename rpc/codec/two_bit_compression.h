// rpc/codec/two_bit_compression.h: MXNet's two bits per value.
#pragma once

#include "rpc/codec/compression.h"

namespace configs {
class Reader;
}

namespace rpc::codec {

// 2 bits per value: ±unit or 0; see Loops::toTwoBit.
extern const EncodingKind TWO_BIT;

// Reads the keys of this compression. r is zero initially. Each step: r ← r + g; the codes of r are
// sent; r ← r - the values of the codes. Therefore the sum of all gradients equals the sent values
// plus the kept ones. Keeps 4 bytes per value.
kj::Own<const Compression> readTwoBit(configs::Reader& reader);

// Returns the threshold rounded to 12 significant bits. With it, sums of up to 4096 codes are
// exact, and do not depend on their order.
float usedThreshold(double threshold);

}  // namespace rpc::codec
