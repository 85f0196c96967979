// rpc/placement.h: keys cut into slices, slices dealt to shards. Pure.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include <cstdint>

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

// A piece of a key. Its borders depend on the keys and the slice size, never on the number of
// servers.
struct Slice {
  uint key;         // index of its key
  uint64_t offset;  // floats, in the flat array
  uint64_t size;    // floats
  uint shard;       // who holds it

  // The slice's part of an array that lies as the flat one does.
  template <typename T>
  kj::ArrayPtr<T> of(kj::ArrayPtr<T> flat) const {
    return flat.slice(offset, offset + size);
  }
};

// A half-open range of slices.
struct SliceRange {
  SliceId begin;
  SliceId end;
};

struct Placement {
  kj::Array<Slice> slices;               // ascending offset; together the whole flat array
  kj::Array<kj::Array<SliceId>> shards;  // the slices of each shard, ascending

  // Floats of the flat array.
  uint64_t parameters() const;
  // Bytes of the fullest shard over bytes of all: below 1.1/S where splittable keys allow it.
  double largestShare() const;
  // The slices that make up floats [begin, end) of the flat array. Both must be borders of slices.
  SliceRange slicesOf(uint64_t begin, uint64_t end) const;
  // A number that two placements share only if they cut and deal alike (FNV-1a, 64 bits): what a
  // worker and a server compare when they meet.
  uint64_t digest() const;
};

// A row of the table of placements.
struct PlacementRule {
  const char* name;
  const char* doc;
  // Sets `shard` of every slice, shards ≥ 1.
  void (*deal)(kj::ArrayPtr<Slice> slices, kj::ArrayPtr<const Key> keys, uint shards);
};
extern const kj::ArrayPtr<const PlacementRule> PLACEMENTS;

// Cuts each key into equal pieces (multiples of 16 floats but the last) and deals them by `rule`. A
// piece has at most `sliceBytes`, and at most a 64th of the whole model unless that is less than 4
// KiB: so a small model too has enough pieces to share evenly. `keys` ascend without gaps from
// offset 0; shards ≥ 1.
Placement place(
    kj::ArrayPtr<const Key> keys, uint64_t sliceBytes, uint shards, const PlacementRule& rule);

}  // namespace rpc
