// rpc/placement.h: cuts keys into slices, and assigns slices to shards. Pure.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include <cstdint>
#include <cstring>

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

// A part of a key. Its borders depend on the keys and the slice size, never on the number of
// servers.
struct Slice {
  uint key;         // index of its key
  uint64_t offset;  // floats, in the flat array
  uint64_t size;    // floats
  uint shard;       // that holds it

  // Returns the slice's part of an array that has the layout of the flat one.
  template <typename T>
  kj::ArrayPtr<T> of(kj::ArrayPtr<T> flat) const {
    return flat.slice(offset, offset + size);
  }
};

// Copies values of the flat array, or of a slice. Both arrays have the same size.
inline void copy(kj::ArrayPtr<const float> from, kj::ArrayPtr<float> to) {
  KJ_IREQUIRE(from.size() == to.size());
  memcpy(to.begin(), from.begin(), to.size() * sizeof(float));
}

// A half-open range of slices.
struct SliceRange {
  SliceId begin;
  SliceId end;
};

// How the flat array of parameters is cut into slices, and which shard holds each of them. All
// roles of a job have the same placement.
struct Placement {
  kj::Array<Slice> slices;               // by ascending offset; together the whole flat array
  kj::Array<kj::Array<SliceId>> shards;  // per shard: its slices, ascending

  // Returns how many floats the flat array has.
  uint64_t parameters() const;
  // Returns the share of all values that the largest shard holds. With the rule `balanced`,
  // splittable keys and up to 11 shards, it is usually below 1.1 / shards.
  double largestShare() const;
  // Returns the slices of floats [begin, end) of the flat array. Both must be borders of slices.
  SliceRange slicesOf(uint64_t begin, uint64_t end) const;
  // Returns a hash of how keys are cut and of which shard holds each slice (FNV-1a, 64 bits).
  // Worker and server compare it in `hello`.
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

// Cuts keys into slices, and assigns these to shards by `rule`. All slices of a key have the same
// size, a multiple of 16 floats, but its last slice may be smaller. A slice has at most
// `sliceBytes`. It also has at most a 64th of the whole model, or 4 KiB if that is more. Therefore
// even a small model has enough slices for all shards to get about the same share. A key that is
// not splittable is one slice, whatever its size. `keys` ascend without gaps from offset 0; shards
// ≥ 1.
Placement place(
    kj::ArrayPtr<const Key> keys, uint64_t sliceBytes, uint shards, const PlacementRule& rule);

}  // namespace rpc
