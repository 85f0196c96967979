// rpc/codec/top_k.h: finds the k largest values of a slice. Pure.
#pragma once

#include <kj/array.h>

#include <cstdint>

namespace rpc::codec {

// Finds the positions of exactly the k largest magnitudes. Of equal magnitudes, the first ones
// count. Keeps its scratch memory. For one thread.
//
// First it computes a bound: it divides the values into at least 2·k groups, and takes the k-th
// largest of their maxima. k groups have a value of at least the bound, so the k-th largest value
// is not below it. Hardly more than k values reach the bound, and only these are searched exactly.
class TopK {
public:
  // Returns the positions in ascending order, valid until the next call. k ≤ values.size() < 2^32.
  kj::ArrayPtr<const uint32_t> find(kj::ArrayPtr<const float> values, size_t k);

private:
  kj::Array<uint32_t> magnitudes;  // first of groups, then of the values found
  kj::Array<uint32_t> positions;
};

}  // namespace rpc::codec
