// rpc/codec/top_k.h: the k largest values of a slice. Pure.
#pragma once

#include <kj/array.h>

#include <cstdint>

namespace rpc::codec {

// Finds the positions of exactly the k largest magnitudes; of equal ones the first. Keeps its
// scratch memory. For one thread.
//
// A bound comes first: of as many groups as have at least twice k, the k-th largest maximum. Each
// of k groups has a value that large, so the k-th largest value is no smaller; and hardly more than
// k values are. Only among these it is searched for exactly.
class TopK {
public:
  // Ascending; until the next call. k ≤ values.size() < 2^32.
  kj::ArrayPtr<const uint32_t> find(kj::ArrayPtr<const float> values, size_t k);

private:
  kj::Array<uint32_t> magnitudes;  // of groups, then of those found
  kj::Array<uint32_t> positions;
};

}  // namespace rpc::codec
