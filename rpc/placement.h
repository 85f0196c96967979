// rpc/placement.h: keys cut into slices, slices dealt to shards. Pure.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace rpc {

using kj::uint;

// A named range of the flat parameter array, as far as the store needs to know it.
struct Key {
  kj::String name;
  uint64_t offset;         // floats
  uint64_t size;           // floats
  bool splittable = true;  // false: an optimizer needs the whole key on one shard
};

using SliceId = uint;  // index into Placement::slices

// A piece of a key. Its borders depend on the key and the slice size alone, never on the number of servers.
struct Slice {
  uint key;         // index of its key
  uint64_t offset;  // floats, in the flat array
  uint64_t size;    // floats
  uint shard;       // who holds it
};

struct Placement {
  kj::Array<Slice> slices;            // ascending offset; together the whole flat array
  kj::Array<kj::Array<SliceId>> shards;  // the slices of each shard, ascending

  // Bytes of the fullest shard over bytes of all: below 1.1/S where splittable keys allow it.
  double largestShare() const;
};

// A row of the table of placements.
struct PlacementRule {
  const char* name;  // balanced, …
  const char* doc;
  void (*deal)(kj::ArrayPtr<Slice> slices, kj::ArrayPtr<const Key> keys, uint shards);
};
extern const kj::ArrayPtr<const PlacementRule> PLACEMENTS;

// Cuts each key larger than `sliceBytes` into equal pieces of at most that size (multiples of 16 floats but the last)
// and deals them by `rule`. shards ≥ 1.
Placement place(
    kj::ArrayPtr<const Key> keys, uint64_t sliceBytes, uint shards, const PlacementRule& rule);

}  // namespace rpc
